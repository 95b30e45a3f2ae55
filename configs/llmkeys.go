package configs

import "regexp"

// The keys of asking models that are no single source's.
const (
	KeyLLMRetries     = "core.llm.retries"
	KeyLLMRetryWait   = "core.llm.retry_wait"
	KeyLLMCurrency    = "core.llm.currency"
	KeyLLMBudgetDay   = "core.llm.budget_day"
	KeyLLMBudgetMonth = "core.llm.budget_month"
	KeyLLMTrusted     = "core.llm.trusted_adapters"
)

// LLMPrefix is what the names of all keys of asking models start with.
const LLMPrefix = "core.llm."

func llmKeys() []Key {
	budget := func(name, english, chinese, period string) Key {
		return Key{
			Name: name, Type: TypeFloat, Default: "0", Min: "0", Max: "1000000000", Step: "1",
			English: english, Chinese: chinese, Category: CategoryModels, Apply: Live,
			Description: "How much money models may take in one " + period + ", in the unit of core.llm.currency. People are told at 80 % and when it is spent; from then on work that no person waits for is refused, but for sources that cost nothing. Zero means no limit.",
		}
	}
	return []Key{
		{
			Name: KeyLLMRetries, Type: TypeInt, Unit: "pauses", Default: "3", Min: "0", Max: "20", Step: "1",
			English: "Retries", Chinese: "重试次数", Category: CategoryModels, Apply: Live,
			Description: "How often a completion that failed at every source is tried once more after a pause, where a pause may help. Nothing is tried again once some of an answer was shown.",
		},
		{
			Name: KeyLLMRetryWait, Type: TypeDuration, Default: "30s", Min: "0", Max: "1h",
			English: "Longest pause", Chinese: "最长重试等待", Category: CategoryModels, Apply: Live,
			Description: "The longest pause before such a retry. A source that asks for a longer one is not waited for.",
		},
		{
			Name: KeyLLMCurrency, Type: TypeString, Default: "USD",
			English: "Currency", Chinese: "货币单位", Category: CategoryModels, Apply: Live,
			Description: "The unit of prices and budgets. It is a name alone: nothing is converted.",
		},
		budget(KeyLLMBudgetDay, "Budget of a day", "每日预算", "day"),
		budget(KeyLLMBudgetMonth, "Budget of a month", "每月预算", "month"),
		{
			Name: KeyLLMTrusted, Type: TypeList, Check: checkTrusted,
			English: "Confirmed adapter files", Chinese: "已信任的适配器文件", Category: CategoryModels, Apply: Live,
			Description: "Files of the folder adapters/ whose scripts run in the node itself, each as NAME.lua@SHA256 (`waiter providers trust FILE` writes it). All others of that folder run in a process of their own with little memory, no files and no network; an edited file is another one.",
		},
	}
}

var trustedForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}\.lua@[0-9a-f]{64}$`)

func checkTrusted(list string) error {
	return checkEach(list, trustedForm, "not the name of an adapter's file with its SHA-256, such as acme.lua@2cf24d…")
}

// TrustedAdapter is how a file is written in core.llm.trusted_adapters; sum is its SHA-256 in lower-case hex.
func TrustedAdapter(name, sum string) string { return name + "@" + sum }
