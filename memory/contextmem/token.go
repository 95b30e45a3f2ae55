package contextmem

import (
	"unicode"

	"homeagent/messages"
)

// Estimate returns about how many tokens a model counts for a text: a word of an
// alphabet about 1.3, a Han, kana or Hangul character 1, four other characters 1.
// It errs to the high side for prose; code and rare scripts may take more.
func Estimate(text string) int {
	words, wide, other := 0, 0, 0
	run := 0
	for _, r := range text {
		switch {
		case r >= 0x2e80 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul):
			wide++
			run = 0
		case r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r)):
			// A new word, and one more piece for every six letters of a long one.
			if run%6 == 0 {
				words++
			}
			run++
		case unicode.IsSpace(r):
			run = 0
		default:
			other++
			run = 0
		}
	}
	return words + wide + (other+1)/2
}

const (
	// perEvent is what role and separators add to each event.
	perEvent = 4
	// perMedia is what one media block counts, whatever its size.
	perMedia = 800
)

// EstimateEvent returns about how many tokens an event takes in a prompt.
func EstimateEvent(e *messages.Event) int {
	n := perEvent
	for _, b := range e.GetBlocks() {
		if b.GetContent().GetPayload() != nil {
			n += perMedia
			continue
		}
		n += Estimate(b.GetContent().GetText())
	}
	return n
}
