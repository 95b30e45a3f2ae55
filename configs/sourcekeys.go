package configs

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// sourceKeys declares the settings of a model source. All are live: the next
// completion is made with the new ones.
func sourceKeys() []Key {
	keys := append(sourceIdentityKeys(), sourceModelKeys()...)
	keys = append(keys, sourceTimeoutKeys()...)
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
