// Package store opens the one database of a node and keeps it honest.
//
// The database is badger. By itself it cuts a damaged write-ahead file without
// a word, leaves out a table whose checksum is wrong, makes a new manifest where
// one is missing (and then deletes every table), and dies of a bus error on a
// full disk. This package adds what is needed so that what was promised to be on
// disk either is there or is missed by name.
//
// # Folder
//
//	format   version of the layout; a newer one is refused, an older one is upgraded
//	         by who owns the records (see Format and Upgraded)
//	mark     high-water mark: what was promised, in two slots with checksums
//	clean    present after an orderly Close; says the last commit
//	db/      badger's files, and nothing else
//	aside/   copies of write-ahead files made after an unclean stop
//
// # Promise
//
// Every transaction carries a stamp: the dense number of the commit, under one
// key that each commit overwrites. Sync makes the commits so far durable and
// then writes their number into the mark. The stamps make the write-ahead files
// a numbered chain: tables hold all commits up to T, the files go on with T+1.
//
// Open reads all of it before badger may touch anything:
//
//  1. A manifest that is missing or unreadable, a table that is missing or whose
//     checksum is wrong, a gap in the chain at or below the mark, a chain that
//     ends below the mark: a *DamageError names it, the files stay as they are,
//     and nothing is opened (unless Options.Salvage).
//  2. A chain that breaks above the mark is a torn tail that nobody was
//     promised: it is cut, named in the log, and the store opens.
//
// After an unclean stop the write-ahead files are copied aside before either is
// decided, and whenever damage is found. The copy is removed when nothing had to
// be cut.
//
// The mark is written after each sync but flushed on its own only from time to
// time, see Options.MarkEvery: a power cut may bring back an older mark, which
// weakens the guard for the last moment and never raises a false alarm.
//
// # Writing
//
// Transactions are serial: Update holds the one write lock while its function
// runs. Each key space has one writer (see Spaces), so that no transaction ever
// conflicts. A transaction is limited by MaxTransaction and is refused whole
// with ErrTooBig before anything is written; nothing is ever split.
//
// Values are limited to MaxValue so that badger's value log stays empty: all
// data live in the tables and their write-ahead files.
//
// # Reading
//
// Readers run concurrently with each other and with the writer, on a snapshot.
// Badger hides a read error of a table as "not found"; tables are therefore
// verified as a whole when the store opens, and records carry a checksum of
// their own (Seal).
package store
