package lexical

import "strings"

// englishStop holds words that carry no content of their own. They are neither
// indexed nor evidence of a match.
var englishStop = set(`
a about above across after again against all almost alone along already also although always am among an and another any
anybody anyone anything anyway are aren't around as at away back be became because become been before being below between
both but by came can can't cannot come could couldn't did didn't do does doesn't doing don't done down during each either
else ever every everyone everything few for from further get gets getting give given go goes going gone gonna got had
hadn't has hasn't have haven't having he he'd he'll he's her here here's hers herself hey hi hello him himself his how
how's however i i'd i'll i'm i've if in indeed into is isn't it it'll it's its itself just kind let let's like lot make
many maybe me might mine more most much must my myself need never no nobody none nor not nothing now of off often oh
ok okay on once one only onto or other others our ours ourselves out over own perhaps please put quite rather really s
said same say says see seem seems shall she she'd she'll she's should shouldn't since so some somebody someone something
still such sure t tell than thank thanks that that's the their theirs them themselves then there there's these they
they'd they'll they're they've thing things this those though through thus to told too toward under until up upon us
use used using very want wanted was wasn't way we we'd we'll we're we've well were weren't what what's whatever when
when's where where's whether which while who who's whom whose why why's will with within without won't would wouldn't
yeah yes yet you you'd you'll you're you've your yours yourself yourselves
`)

// questionNoise holds further words that ask rather than say: they are indexed,
// but they count as evidence only beside a word of content.
var questionNoise = set(`
ask asked mention mentioned remember recall remind know knew talk talked talking speak spoke discuss discussed say saying
anything earlier previously last time ago may
`)

// hanHard holds Han characters that are grammar in nearly every place: a pair
// with one of them is no evidence, and alone they are not indexed.
var hanHard = runeSet("的了吗呢吧啊呀哦嗯么我你您他她它们这那哪谁是和与跟把被哈喔噢哟喂嘛")

// hanSoft holds Han characters that are grammar when they stand alone, but make
// words with a neighbour (过年, 会议, 对象).
var hanSoft = runeSet("在有对给从到向就都也还又再很太最更不没过着地得之说以为因所但而且或如果虽可能会要想请让叫啥怎什几多少个些一二两" +
	"其此该每各某去来上下里中")

// hanNoise holds words that ask, longest first, which are cut out of a query
// before its pairs are made: "你还记得我告诉过你" leaves nothing.
var hanNoise = strings.Fields(`
有没有说过 有没有提过 有没有告诉 是什么时候 你还记得 还记不记得 能不能告诉 什么时候 什么地方 为什么 怎么样 有没有 是不是 能不能 记不记得
告诉过 提到过 说起过 聊到过 谈到过 跟你说 和你说 对你说 告诉我 告诉你 告诉 记得 知道 提到 提过 说过 讲过 聊过 谈过 说起 聊起 谈起 曾经 之前 以前
聊了 聊的 话题 上次 什么 怎么 哪里 哪儿 哪个 哪些 多少 几个 时候 为何 如何 请问 一下 关于 名字叫 叫什么 推荐过 分享过 提及 问过 觉得 认为 我们 你们 他们
`)

// memoryWords and hanMemory ask about what was said before.
var memoryWords = set("remember recall remind told tell said say mention mentioned know")

var hanMemory = strings.Fields("告诉 记得 说过 提到 提过 讲过 聊过 谈过 知道")

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

func runeSet(s string) map[rune]bool {
	m := map[rune]bool{}
	for _, r := range s {
		m[r] = true
	}
	return m
}
