//go:build ignore

// Gendict writes dict.txt.gz: the most frequent simplified Chinese words of the
// dictionary in the gse module, whose folder is the argument. The output is the
// same for the same input.
package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// words is how many words are kept: measured, this many cut as well as all
// 352,000 and load in a seventh of the time and of the memory.
const words = 60_000

type entry struct {
	word string
	freq float64
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: gendict FOLDER-OF-THE-GSE-MODULE")
	}
	list, err := read(filepath.Join(os.Args[1], "data", "dict", "zh", "s_1.txt"))
	if err != nil {
		log.Fatal(err)
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].freq > list[j].freq })
	if len(list) > words {
		list = list[:words]
	}
	sort.Slice(list, func(i, j int) bool { return list[i].word < list[j].word })
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range list {
		fmt.Fprintf(z, "%s %d\n", e.word, int64(e.freq))
	}
	if err := z.Close(); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile("dict.txt.gz", out.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
}

func read(path string) ([]entry, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var list []entry
	seen := map[string]bool{}
	for s := bufio.NewScanner(f); s.Scan(); {
		fields := strings.Fields(s.Text())
		if len(fields) < 2 || !han(fields[0]) || seen[fields[0]] {
			continue
		}
		freq, err := strconv.ParseFloat(fields[1], 64)
		if err != nil || freq < 2 {
			continue
		}
		seen[fields[0]] = true
		list = append(list, entry{fields[0], freq})
	}
	return list, nil
}

// han keeps words of two characters and more, and single ones: the segmenter
// needs both; anything with other letters is cut without a dictionary.
func han(w string) bool {
	for _, r := range w {
		if !unicode.Is(unicode.Han, r) {
			return false
		}
	}
	return utf8.RuneCountInString(w) > 0
}
