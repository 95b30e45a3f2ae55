// Package plugins puts an actor before each plugin.
//
// # The root
//
// Kind "plugins", path "plugins", provides the facility "plugins". It has one proxy spawned for each plugin that the
// node has and tells people of them.
//
// Messages in:
//
//	PluginView   of a proxy, at each change; kept
//	ListPlugins  -> PluginList or Error unknown_plugin
//	PluginSpec   -> Ok or Error unknown_plugin: starts a proxy again that has ended
//	Restarted    of tools or config: its proxies are told to register and to subscribe again
//	Drain        -> Ok
//
// It is ready when each proxy has said how its plugin is, or after 10 s: a plugin does not keep a node from starting.
//
// # A proxy
//
// Kind "plugin", path "plugins/<name>". It follows the keys plugin.<name>.*, brings its plugin up, registers the tools,
// and runs their calls in workers.
//
// Messages in:
//
//	ConfigChanged  the plugin is brought up, handed its settings, or brought down, as plugin.<name>.enabled says
//	CallTool       -> ToolResult, exactly one for each call
//	CancelTool     ends a call: one that may be made again as cancelled, any other with unknown_outcome; control lane
//	ListPlugins    -> PluginList of this one: what it says holds after all settings that were changed before it was asked
//	PluginSpec     of the root: tools or config was restarted
//	Ok, Error      of tools
//
// Phases: starting -> disabled, running or broken; from each of these to starting as keys change. A plugin that
// cannot come up is broken until its settings change or a person restarts the proxy. The tools of a plugin that is not
// running are withdrawn, and its calls end.
//
// A panic in a plugin fails the one call it happens in, never the proxy. A restart of the proxy loses the calls under
// way; tools tells who waits for them.
//
// Bounds: maxCalls calls at a time, above which a call is refused; the mailbox by the kind's limits.
//
// Another kind of plugin is one more implementation of pluginhost.Plugin; nothing here asks what a plugin is made of.
package plugins
