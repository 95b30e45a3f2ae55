package configs

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// sourceKeys declares the settings of a model source. All are live: the next
// completion is made with the new ones.
func sourceKeys() []Key {
	keys := slices.Concat(sourceIdentityKeys(), sourceRequestKeys(), sourceModelKeys(), sourcePriceKeys(), sourceTimeoutKeys())
	for i := range keys {
		keys[i].Name = SourceKey(wildcard, keys[i].Name)
		keys[i].Category, keys[i].Apply = CategoryModels, Live
	}
	return keys
}

func sourceIdentityKeys() []Key {
	return []Key{
		{
			Name: SourceAdapter, Type: TypeString, Required: true, Check: checkAdapter,
			English: "Adapter", Chinese: "适配器",
			Description: "Which adapter speaks to the source, such as openai for every compatible server, or offline. A source exists when it has one.",
		},
		{
			Name: SourceBaseURL, Type: TypeURL,
			English: "Address", Chinese: "接口地址",
			Description: "The address of the source's interface, to which the adapter adds its paths. Unset means the adapter's own default.",
		},
		{
			Name: SourceModel, Type: TypeString,
			English: "Model", Chinese: "模型",
			Description: "The name of the model at the source. Unset means the adapter's own default.",
		},
		{
			Name: SourceAPIKey, Type: TypeSecret,
			English: "API key", Chinese: "接口密钥",
			Description: "The credential of the source. Unset sends none.",
		},
		{
			Name: SourceAPIKeys, Type: TypeSecret,
			English: "Further API keys", Chinese: "备用接口密钥",
			Description: "Further credentials of the source, separated by commas or spaces. They are used in turn with api_key; one that is refused or used up rests alone.",
		},
		{
			Name: SourcePriority, Type: TypeInt, Default: "0", Min: "-1000", Max: "1000", Step: "1",
			English: "Order", Chinese: "优先顺序",
			Description: "The place in the order in which sources are tried: lower first, equal ones by name.",
		},
		{
			Name: SourceEnabled, Type: TypeBool, Default: "true",
			English: "Enabled", Chinese: "启用",
			Description: "Whether the source is used; off keeps its settings.",
		},
	}
}

func sourceRequestKeys() []Key {
	return []Key{
		{
			Name: SourceHeaders, Type: TypeText, Check: checkHeaders,
			English: "Headers", Chinese: "附加请求头",
			Description: "Headers that are added to each request, one a line as Name: value; they win over the adapter's. {{api_key}} in a value stands for the key.",
		},
		{
			Name: SourceExtraBody, Type: TypeText, Check: checkObject,
			English: "Extra body", Chinese: "附加请求体",
			Description: "A JSON object that is merged into the body of each request and wins: objects field by field, null removes a field.",
		},
		{
			Name: SourceOptions, Type: TypeText, Check: checkObject,
			English: "Adapter options", Chinese: "适配器选项",
			Description: "A JSON object with what the adapter leaves to be set, such as a region; see docs/adapters.md.",
		},
		{
			Name: SourceStream, Type: TypeBool, Default: "true",
			English: "Streaming", Chinese: "流式输出",
			Description: "Whether answers are asked for as streams. Off asks for each in one piece, for servers whose streams are broken.",
		},
	}
}

func sourceModelKeys() []Key {
	return []Key{
		{
			Name: SourceMaxConcurrent, Type: TypeInt, Unit: "calls", Default: "8", Min: "1", Max: "1000", Step: "1",
			English: "Parallel calls", Chinese: "并发上限",
			Description: "How many calls the source may have open at one time; further ones wait.",
		},
		{
			Name: SourceContextWindow, Type: TypeInt, Unit: "tokens", Default: "0", Min: "0", Max: "100000000", Step: "1000",
			English: "Context window", Chinese: "上下文窗口",
			Description: "The context window of the model. Zero means what the adapter knows of the model, or a cautious guess that is logged.",
		},
		{
			Name: SourceMaxTokens, Type: TypeInt, Unit: "tokens", Default: "0", Min: "0", Max: "10000000", Step: "256",
			English: "Longest answer", Chinese: "回答上限",
			Description: "The most tokens of one answer. Zero leaves it to the source.",
		},
		{
			Name: SourceTemperature, Type: TypeFloat, Min: "0", Max: "2", Step: "0.1",
			English: "Temperature", Chinese: "温度",
			Description: "How freely the model chooses its words. Unset sends none: some models refuse any.",
		},
		{
			Name: SourceThinkingEnabled, Type: TypeBool, Default: "false",
			English: "Thinking", Chinese: "思考模式",
			Description: "Whether the model is asked to think before it answers, where the adapter can ask for it.",
		},
		{
			Name: SourceVision, Type: TypeBool, Default: "false",
			English: "Sees images", Chinese: "支持图像",
			Description: "Whether the model takes images.",
		},
		{
			Name: SourceAudio, Type: TypeBool, Default: "false",
			English: "Hears audio", Chinese: "支持音频",
			Description: "Whether the model takes audio.",
		},
		{
			Name: SourceTools, Type: TypeBool, Default: "true",
			English: "Calls tools", Chinese: "支持工具",
			Description: "Whether the model can call tools. Off offers it none, so that it answers in words alone.",
		},
	}
}

func sourcePriceKeys() []Key {
	price := func(name, english, chinese, what string) Key {
		return Key{
			Name: name, Type: TypeFloat, Min: "0", Max: "1000000", Step: "0.01",
			English: english, Chinese: chinese,
			Description: "What a million " + what + " in the unit of core.llm.currency.",
		}
	}
	return []Key{
		price(SourcePriceIn, "Price of input", "输入价格", "prompt tokens cost,"),
		price(SourcePriceOut, "Price of output", "输出价格", "answer tokens cost, reasoning among them,"),
		price(SourcePriceCached, "Price of cached input", "缓存输入价格", "prompt tokens cost that were read from the vendor's cache; unset means as price_in,"),
		price(SourcePriceCacheWrite, "Price of cache writes", "缓存写入价格", "prompt tokens cost that were written to the vendor's cache; unset means as price_in,"),
	}
}

func sourceTimeoutKeys() []Key {
	return []Key{
		{
			Name: SourceTimeoutConnect, Type: TypeDuration, Default: "10s", Min: "100ms", Max: "10m",
			English: "Connect time limit", Chinese: "连接超时",
			Description: "How long connecting may take, TLS included.",
		},
		{
			Name: SourceTimeoutFirstByte, Type: TypeDuration, Default: "2m", Min: "100ms", Max: "1h",
			English: "First byte time limit", Chinese: "首字节超时",
			Description: "How long the source may take from the sent request to the first byte of its answer.",
		},
		{
			Name: SourceTimeoutIdle, Type: TypeDuration, Default: "1m", Min: "100ms", Max: "1h",
			English: "Silence time limit", Chinese: "静默超时",
			Description: "How long an answer that streams may pause before it counts as cut.",
		},
		{
			Name: SourceTimeoutTotal, Type: TypeDuration, Default: "10m", Min: "1s", Max: "1d",
			English: "Call time limit", Chinese: "总超时",
			Description: "How long one call may take in all.",
		},
	}
}

var adapterForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

func checkAdapter(text string) error {
	if !adapterForm.MatchString(text) {
		return errors.New("not the name of an adapter: lower-case letters, digits, hyphens and underscores")
	}
	return nil
}

// checkEach checks the entries of a canonical list against a form.
func checkEach(list string, form *regexp.Regexp, what string) error {
	for entry := range strings.SplitSeq(list, ",") {
		if !form.MatchString(entry) {
			return fmt.Errorf("a list in which %s is %s", quoteValue(entry), what)
		}
	}
	return nil
}

// ParseHeaders reads the text of a source's headers: one a line, as Name: value.
func ParseHeaders(text string) (map[string]string, error) {
	out := make(map[string]string)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || !headerForm.MatchString(name) {
			return nil, errors.New("not a list of headers, one a line as Name: value")
		}
		out[name] = strings.TrimSpace(value)
	}
	return out, nil
}

var headerForm = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$")

func checkHeaders(text string) error {
	_, err := ParseHeaders(text)
	return err
}

func checkObject(text string) error {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &object) != nil || object == nil {
		return errors.New("not a JSON object")
	}
	return nil
}
