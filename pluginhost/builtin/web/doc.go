// Package web is the built-in plugin that fetches pages of the web.
//
// Its tool web_fetch (class net, pure) fetches one URL with GET through internal/egress, which decides where from, and
// gives the text of it: HTML as readable Markdown, text and JSON as they are, in UTF-8 whatever they were in. Other types
// are refused by name. What comes back is foreign: it is what strangers have written.
package web
