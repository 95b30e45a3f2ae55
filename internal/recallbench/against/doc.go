// Package against measures recall beside what it replaces: SQLite with LIKE and a breadth-first walk in the schema of the
// original, and bleve for words. It is a module of its own, so that neither enters the program or its module file:
//
//	cd internal/recallbench/against && go test -bench .
package against
