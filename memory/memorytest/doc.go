// Package memorytest holds what the tests of several memory packages share: the
// labelled conversations that recall is measured on.
package memorytest
