package lexical

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// traits say what kind of a text it is, as far as its form shows it. They are stored with it.
type traits byte

const (
	// traitAsks: it does nothing but ask; traitAsksToo: it ends with a question.
	traitAsks traits = 1 << iota
	traitAsksToo
	// traitTime: it says when something is, was or will be.
	traitTime
	// traitNumber: it holds a number.
	traitNumber
)

func traitsOf(body string) traits {
	var out traits
	if only, too := questioning(body); only {
		out |= traitAsks
	} else if too {
		out |= traitAsksToo
	}
	scan(body, func(run []rune, kind runKind) {
		switch kind {
		case runHan:
			s := string(run)
			if containsAny(s, hanTimes) {
				out |= traitTime
			}
			if strings.ContainsAny(s, "一二三四五六七八九十百千万两") {
				out |= traitNumber
			}
		case runWord:
			w := string(run)
			if timeWords[w] || year(w) {
				out |= traitTime
			}
			if numberWords[w] || strings.IndexFunc(w, unicode.IsDigit) >= 0 {
				out |= traitNumber
			}
		}
	})
	return out
}

// asking returns how much of a text asks: 1, a part, or 0.
func (t traits) asking() float64 {
	switch {
	case t&traitAsks != 0:
		return 1
	case t&traitAsksToo != 0:
		return 0.3
	}
	return 0
}

// questioning reports whether a text ends with a question, and whether it tells nothing before it.
func questioning(text string) (only, too bool) {
	t := strings.TrimSpace(text)
	if t == "" {
		return false, false
	}
	r, size := utf8.DecodeLastRuneInString(t)
	if r != '?' && r != '？' && r != '吗' && r != '呢' {
		return false, false
	}
	t = t[:len(t)-size]
	if strings.ContainsAny(t, ".!?。！？\n") {
		return false, true
	}
	// What stands before the last comma may tell, if it is more than an address.
	before := t[:max(0, strings.LastIndexAny(t, ",，"))]
	return !(weight(before) >= 10 && !asksAtAll(before) && !Asking(before)), true
}

// weight of a text: a Han character counts one, a word two.
func weight(text string) int {
	n := 0
	scan(text, func(run []rune, kind runKind) {
		if kind == runHan {
			n += len(run)
		} else {
			n += 2
		}
	})
	return n
}

// OnlyAsks reports whether a text does nothing but ask: something told before the question still tells.
func OnlyAsks(text string) bool {
	only, _ := questioning(text)
	return only
}

// asksWhen reports a text that asks for a time.
func asksWhen(text string) bool {
	t := strings.ToLower(text)
	if containsAny(t, []string{"什么时候", "何时", "哪天", "哪一天", "哪年", "哪一年", "几月", "几号", "几点", "多久", "哪个月"}) {
		return true
	}
	words := strings.FieldsFunc(t, func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' })
	for i, w := range words {
		if w == "when" || w == "when's" {
			return true
		}
		if i+1 == len(words) {
			break
		}
		switch next := words[i+1]; w {
		case "what", "which":
			switch next {
			case "date", "day", "month", "year", "time", "week":
				return true
			}
		case "how":
			if next == "long" {
				return true
			}
		}
	}
	return false
}

// asksCount reports a text that asks for a number.
func asksCount(text string) bool {
	t := strings.ToLower(text)
	for _, w := range []string{"how many", "how much", "how often", "how old", "多少", "几个", "几次", "几岁"} {
		if strings.Contains(t, w) {
			return true
		}
	}
	return false
}

// asksAtAll reports a text that wants to know something, in whatever form.
func asksAtAll(text string) bool {
	if _, too := questioning(text); too {
		return true
	}
	t := strings.ToLower(strings.TrimSpace(text))
	first, _, _ := strings.Cut(t, " ")
	first, _, _ = strings.Cut(first, "'")
	return questionWords[first] || containsAny(t, hanQuestions) || strings.HasPrefix(t, "tell me") || strings.HasPrefix(t, "do you ")
}

var questionWords = set("what when where who whom whose which why how did does is are was were has have had can could would should will")

var hanQuestions = strings.Fields("什么 怎么 哪 谁 多少 几 为何 如何 是否 有没有 是不是 告诉我")

// capitalised returns the words of a text that are written as names, in lower case: with a capital inside a sentence
// that is not all capitals.
func capitalised(text string) map[string]bool {
	out := map[string]bool{}
	start, small := true, false
	word := -1
	end := func(i int) {
		if word < 0 {
			return
		}
		w := text[word:i]
		r, _ := utf8.DecodeRuneInString(w)
		upper := strings.IndexFunc(w, unicode.IsUpper)
		if unicode.IsLower(r) {
			small = true
		}
		if upper > 0 && strings.IndexFunc(w, unicode.IsLower) >= 0 || upper == 0 && !start {
			w = strings.ToLower(w)
			out[w] = true
			out[strings.TrimSuffix(w, "'s")] = true
		}
		start, word = false, -1
	}
	for i, r := range text {
		switch {
		case unicode.IsLetter(r) && !unspaced(r) || unicode.IsMark(r) || unicode.IsDigit(r) || word >= 0 && (r == '\'' || r == '-'):
			if word < 0 {
				word = i
			}
		default:
			end(i)
			start = start || r == '.' || r == '!' || r == '?' || r == '\n' || r == ':'
			if unspaced(r) {
				// A word of another script inside Chinese is written out for what it names.
				start, small = false, true
			}
		}
	}
	end(len(text))
	if !small {
		return nil
	}
	return out
}

// symbol reports a token that means just what it says: digits with letters or marks in it, or a number of three digits
// or more that is no year.
func symbol(word string) bool {
	digits, others := 0, 0
	for _, r := range word {
		switch {
		case unicode.IsDigit(r):
			digits++
		case r == '\'' || r == '’':
			return false
		default:
			others++
		}
	}
	switch {
	case digits == 0:
		return others > 0 && strings.ContainsAny(word, "_@/\\")
	case others > 0:
		return ordinal(word) == ""
	}
	return digits > 2 && !year(word)
}

// year reports a year of the last or this century.
func year(w string) bool {
	return len(w) == 4 && (strings.HasPrefix(w, "19") || strings.HasPrefix(w, "20")) &&
		strings.IndexFunc(w, func(r rune) bool { return r < '0' || r > '9' }) < 0
}

func containsAny(s string, list []string) bool {
	for _, w := range list {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

var timeWords = set(`
yesterday today tonight tomorrow last next ago week weekend month year recently since
monday tuesday wednesday thursday friday saturday sunday
january february march april june july august september october november december
`)

var hanTimes = strings.Fields("昨天 前天 今天 明天 后天 昨晚 今晚 上周 下周 这周 上个月 下个月 去年 今年 明年 星期 周末 礼拜 月 号 年前 天前")

var numberWords = set("one two three four five six seven eight nine ten twelve dozen couple several many few hundred thousand once twice")
