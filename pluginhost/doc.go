// Package pluginhost holds the kinds of plugins as engines without actors. A Plugin is one plugin as the node sees it,
// whatever it is made of; actors/plugins puts one proxy actor before each.
package pluginhost
