package turn

import (
	"unicode"

	"homeagent/messages"
)

// Estimates are in tokens of no particular vendor: four ASCII bytes, one Han, kana or hangul character, or two other
// characters make one. They err on the high side.

const (
	messageOverhead = 4
	payloadTokens   = 800
)

func textTokens(s string) int {
	ascii, wide, other := 0, 0, 0
	for _, r := range s {
		switch {
		case r < 0x80:
			ascii++
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul):
			wide++
		default:
			other++
		}
	}
	return (ascii+3)/4 + wide + (other+1)/2
}

func messageTokens(msg *messages.ChatMessage) int {
	n := messageOverhead + textTokens(msg.GetReasoning()) + len(msg.GetReplay())/4
	for _, p := range msg.GetParts() {
		if p.GetPayload() != nil {
			n += payloadTokens
			continue
		}
		n += textTokens(p.GetText())
	}
	for _, c := range msg.GetCalls() {
		n += messageOverhead + textTokens(c.GetName()) + len(c.GetArgumentsJson())/4
	}
	return n
}

func toolTokens(d *messages.ToolDef) int {
	return messageOverhead + textTokens(d.GetName()) + textTokens(d.GetDescription()) + len(d.GetParametersJson())/4
}
