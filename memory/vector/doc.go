// Package vector finds the nearest of many vectors by a scan: a sign bit for each of 512 directions of a fixed random
// rotation, compared by counting bits, then the best few hundred again by their int8 components. There is nothing to build
// and nothing to tune; 100,000 vectors take some two milliseconds on one core.
//
// An Index holds vectors of one space and refuses those of another. It lives in memory (64 bytes and the components for each
// vector) and is made anew from the texts in the store. Deleted ones are marked, and their place is given to later ones.
// Safe for concurrent use.
package vector
