package configs

// The keys of the store: how long what has ended is kept, and how large it may become.
const (
	KeyStoreBudget      = "core.store.budget"
	KeyRetentionJournal = "core.retention.journal"
	KeyRetentionTasks   = "core.retention.tasks"
	KeyRetentionKeys    = "core.retention.keys"
	KeyRetentionOutputs = "core.retention.outputs"
	KeyRetentionAside   = "core.retention.aside"
	KeyRetentionUsage   = "core.retention.usage"
)

func storeKeys() []Key {
	keep := func(name, value, english, chinese, description string) Key {
		return Key{
			Name: name, Type: TypeDuration, Default: value, Min: "1h", Max: "3650d",
			English: english, Chinese: chinese, Category: CategoryNode, Apply: Live, Description: description,
		}
	}
	return []Key{
		{
			Name: KeyStoreBudget, Type: TypeSize, Default: "10GiB", Min: "0B", Max: "1000TiB",
			English: "Store budget", Chinese: "存储上限", Category: CategoryNode, Apply: Live,
			Description: "How much disk space the store may take; 0 means no limit. Above it what has ended is kept for shorter and shorter times, and when that does not help, inputs are refused with store_full until there is room.",
		},
		keep(KeyRetentionJournal, "7d", "Keep journals", "日志保留",
			"How long the steps of a task stay after its end."),
		keep(KeyRetentionTasks, "90d", "Keep tasks", "任务保留",
			"How long an ended task stays with its input and its result, which can be fetched by the input's id until then. It is at least as long as core.retention.keys."),
		keep(KeyRetentionKeys, "30d", "Keep idempotency keys", "幂等键保留",
			"How long the idempotency key of an input is known: the same key is the same input until then."),
		keep(KeyRetentionOutputs, "30d", "Keep sent outputs", "已发送输出保留",
			"How long an output stays after its channel has taken it. What was not sent yet stays until it is."),
		keep(KeyRetentionAside, "90d", "Keep crash loops", "崩溃任务保留",
			"How long the input and the steps of a task stay that was ended because it brought the node down again and again."),
		keep(KeyRetentionUsage, "400d", "Keep usage", "用量保留",
			"How long it stays what tokens and money a day took, by source, agent and conversation. The current month is always kept."),
	}
}
