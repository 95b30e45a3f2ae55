package configs

import (
	"errors"
	"regexp"
	"slices"
	"time"
	_ "time/tzdata" // zones are checked, and used, on systems without a zone database too
)

// Keys returns the declarations of all core keys, in the order of the
// documentation. The slice belongs to the caller.
func Keys() []Key {
	return slices.Concat(agentKeys(), schedulerKeys(), sourceKeys(), llmKeys(), mediaKeys(), toolKeys(), guardKeys(), memoryKeys(), timerKeys(), nodeKeys(), storeKeys(), adminKeys())
}

func agentKeys() []Key {
	return slices.Concat(personKeys(), []Key{
		{
			Name: KeyAgentMaxToolTurns, Type: TypeInt, Unit: "rounds", Default: "25", Min: "1", Max: "500", Step: "1",
			English: "Tool rounds per turn", Chinese: "每轮工具调用上限", Category: CategoryAgent, Apply: Live,
			Description: "How many rounds of tool calls one turn may make before it must answer with what it has.",
		},
		{
			Name: KeyAgentMaxContextSize, Type: TypeInt, Unit: "events", Default: "30", Min: "0", Max: "2000", Step: "5",
			English: "Past events in a prompt", Chinese: "上下文事件数", Category: CategoryAgent, Apply: Live,
			Description: "How many of the latest events of the conversation a prompt may hold, besides what recall brings. Zero puts none in. The token budget bounds it further.",
		},
		{
			Name: KeyAgentContextRatio, Type: TypeFloat, Default: "0.8", Min: "0.1", Max: "1", Step: "0.05",
			English: "Share of the context window", Chinese: "上下文窗口占比", Category: CategoryAgent, Apply: Live,
			Description: "Which share of a model's context window a prompt may fill; the rest is left for the answer.",
		},
		{
			Name: KeyAgentContextLimit, Type: TypeInt, Unit: "tokens", Default: "600000", Min: "1000", Max: "10000000", Step: "1000",
			English: "Largest prompt", Chinese: "提示词上限", Category: CategoryAgent, Apply: Live,
			Description: "The most tokens a prompt may hold, however large the model's context window is.",
		},
		{
			Name: KeyAgentTurnDeadline, Type: TypeDuration, Default: "30m", Min: "10s", Max: "1d",
			English: "Longest turn", Chinese: "单轮时限", Category: CategoryAgent, Apply: Live,
			Description: "How long a turn may run before it ends as failed. Time in which it is suspended does not count.",
		},
		{
			Name: KeyAgentToolTimeout, Type: TypeDuration, Default: "1m", Min: "1s", Max: "1d",
			English: "Tool time limit", Chinese: "工具超时", Category: CategoryTools, Apply: Live,
			Description: "How long one tool call may take before it is cancelled and the model is told. core.tools.timeout.<name> sets another limit for one tool.",
		},
		{
			Name: KeyAgentQueueLimit, Type: TypeInt, Unit: "inputs", Default: "256", Min: "1", Max: "100000", Step: "1",
			English: "Waiting inputs", Chinese: "排队上限", Category: CategoryAgent, Apply: Live,
			Description: "How many accepted inputs may wait or run at one time. When they do, a further input is refused and nothing of it is kept.",
		},
	})
}

func personKeys() []Key {
	return []Key{
		{
			Name: KeyAgentName, Type: TypeString, Default: "Home", Required: true,
			English: "Name of the agent", Chinese: "智能体名称", Category: CategoryAgent, Apply: Live,
			Description: "What the agent calls itself; {{agent_name}} in a prompt stands for it.",
		},
		{
			Name: KeyAgentLanguage, Type: TypeString, Default: "auto", Check: checkLanguage,
			English: "Language", Chinese: "语言", Category: CategoryAgent, Apply: Live,
			Description: "The language of answers, as a tag such as en or zh-CN; auto answers in the language of the person.",
		},
		{
			Name: KeyAgentTimezone, Type: TypeString, Check: checkTimezone,
			English: "Time zone", Chinese: "时区", Category: CategoryAgent, Apply: Live,
			Description: "The person's time zone as an IANA name such as Asia/Shanghai. Unset means the zone of the machine. Times are stored in UTC in any case.",
		},
		{
			Name: KeyAgentSystemPrompt, Type: TypeText, Check: checkPrompt,
			English: "System prompt", Chinese: "系统提示词", Category: CategoryAgent, Apply: Live,
			Description: "Who the agent is and how it behaves. Unset means the persona that comes with the program. Placeholders: {{agent_name}}, {{node_name}}, {{kernel_version}}, {{kernel_commit}}, {{sdk_version}}.",
		},
		{
			Name: KeyAgentPersonalPrompt, Type: TypeText, Check: checkPrompt,
			English: "Personal prompt", Chinese: "个人提示词", Category: CategoryAgent, Apply: Live,
			Description: "What the agent should know about its people, added after the system prompt. The same placeholders as there.",
		},
	}
}

func schedulerKeys() []Key {
	return []Key{
		{
			Name: KeySchedulerCooldown, Type: TypeDuration, Default: "2s", Min: "0", Max: "1h",
			English: "Preemption cooldown", Chinese: "抢占冷却", Category: CategoryAgent, Apply: Live,
			Description: "How long a task that was just preempted is left alone by interrupts of ordinary level. Zero means no protection.",
		},
		{
			Name: KeyInputDuplicateWindow, Type: TypeDuration, Default: "10s", Min: "0", Max: "1d",
			English: "Duplicate window", Chinese: "重复输入窗口", Category: CategoryAgent, Apply: Live,
			Description: "Within this time the same text from the same principal in the same conversation, sent without an idempotency key while the first one is not yet answered, counts as a duplicate. Zero means never.",
		},
	}
}

func toolKeys() []Key {
	return []Key{
		{
			Name: KeyToolsDenied, Type: TypeList,
			English: "Denied tools", Chinese: "禁用工具", Category: CategoryTools, Apply: Live,
			Description: "Names of tools that no model is offered and no call may reach; a * at the end stands for any rest.",
		},
		{
			Name: KeyToolsTimeout, Type: TypeDuration, Min: "1s", Max: "1d",
			English: "Time limit of one tool", Chinese: "单个工具超时", Category: CategoryTools, Apply: Live,
			Description: "The time limit of the tool with this name, in place of core.agent.tool_timeout.",
		},
		{
			Name: KeyToolsSends, Type: TypeInt, Unit: "messages", Default: "10", Min: "0", Max: "1000", Step: "1",
			English: "Messages per turn", Chinese: "每轮发送上限", Category: CategoryTools, Apply: Live,
			Description: "How many messages one turn may send with output_send, besides its answer. Zero lets it send none.",
		},
		{
			Name: KeyEgressAllow, Type: TypeList, Check: checkEgress,
			English: "Allowed home addresses", Chinese: "允许访问的内网地址", Category: CategoryTools, Apply: Live,
			Description: "Hosts and networks that may be fetched from although they lie at home or on this machine, each as nas.local, nas.local:5000, 192.168.1.10, 192.168.1.10:8080 or 192.168.1.0/24. Unset means none. Link-local addresses and metadata services of clouds are never fetched from.",
		},
	}
}

func memoryKeys() []Key {
	return []Key{
		{
			Name: KeyMemoryRecallLimit, Type: TypeInt, Unit: "hits", Default: "8", Min: "0", Max: "100", Step: "1",
			English: "Recalled memories", Chinese: "召回条数", Category: CategoryMemory, Apply: Live,
			Description: "How many memories recall may add to a prompt. Zero turns automatic recall off; tools can still ask memory.",
		},
		{
			Name: KeyEmbeddingModel, Type: TypeString,
			English: "Word vectors", Chinese: "词向量文件", Category: CategoryMemory, Apply: Restart,
			Description: "A file of word vectors, by which memory also finds what is said in other words: fastText (.vec text, also packed with gzip, or .bin that is not quantised), word2vec text, or Numberbatch. The 200,000 most frequent words are loaded, some 70 MB. Empty means that words are only found by themselves.",
		},
	}
}

func nodeKeys() []Key {
	return []Key{
		{
			Name: KeyLogLevel, Type: TypeEnum, Default: "info", Options: []string{"debug", "info", "warn", "error"},
			English: "Log level", Chinese: "日志级别", Category: CategoryNode, Apply: Live,
			Description: "The least important level that is written to the log.",
		},
		{
			Name: KeyStoreReserve, Type: TypeSize, Default: "256MiB", Min: "1MiB", Max: "1TiB",
			English: "Disk reserve", Chinese: "磁盘保留空间", Category: CategoryNode, Apply: Live,
			Description: "Free space on the disk of the data folder below which writes are refused with disk_low until there is room again.",
		},
	}
}

func adminKeys() []Key {
	return []Key{
		{
			Name: KeyAdminMaxBody, Type: TypeSize, Default: "32MiB", Min: "64KiB", Max: "1GiB",
			English: "Largest request", Chinese: "请求大小上限", Category: CategoryAdmin, Apply: Restart,
			Description: "The largest HTTP request body that is read; a larger one is answered with 413.",
		},
		{
			Name: KeyAdminEventRing, Type: TypeInt, Unit: "events", Default: "2000", Min: "100", Max: "100000", Step: "100",
			English: "Event ring", Chinese: "事件环大小", Category: CategoryAdmin, Apply: Restart,
			Description: "How many of the latest events can be replayed to a client that reconnects to the event stream.",
		},
		{
			Name: KeyAdminHeartbeat, Type: TypeDuration, Default: "15s", Min: "1s", Max: "10m",
			English: "Stream heartbeat", Chinese: "事件流心跳", Category: CategoryAdmin, Apply: Restart,
			Description: "How often an idle event stream sends a comment, so that both ends notice a dead connection.",
		},
		{
			Name: KeyAdminAllowedOrigins, Type: TypeList, Check: checkOrigins,
			English: "Allowed origins", Chinese: "允许的来源", Category: CategoryAdmin, Apply: Restart,
			Description: "Origins of web pages, besides the node's own, that may call the HTTP interface, each as scheme://host or scheme://host:port.",
		},
		{
			Name: KeyAdminAllowedHosts, Type: TypeList, Check: checkHosts,
			English: "Allowed host names", Chinese: "允许的主机名", Category: CategoryAdmin, Apply: Restart,
			Description: "Values of the Host header, besides the address listened on and loopback, under which the node may be called, each as host or host:port.",
		},
	}
}

var languageForm = regexp.MustCompile(`^(auto|[a-zA-Z]{2,3}(-[a-zA-Z0-9]{2,8}){0,3})$`)

func checkLanguage(text string) error {
	if !languageForm.MatchString(text) {
		return errors.New("neither auto nor a language tag such as en or zh-CN")
	}
	return nil
}

func checkTimezone(text string) error {
	if text == "Local" {
		return errors.New("not a zone name; unset the key for the zone of the machine")
	}
	if _, err := time.LoadLocation(text); err != nil {
		return errors.New("not an IANA zone name such as Asia/Shanghai or Europe/Berlin")
	}
	return nil
}

// egressForm is a host or an IPv4 address with or without a port, an IPv6 address in brackets with or without a port, a
// bare IPv6 address, or a network.
var egressForm = regexp.MustCompile(`^[a-z0-9._-]+(:[0-9]{1,5})?$|^\[[0-9a-f:]+\](:[0-9]{1,5})?$|^[0-9a-f:]+$|^[0-9a-f.:]+/[0-9]{1,3}$`)

func checkEgress(list string) error {
	return checkEach(list, egressForm, "not a host, address or network such as nas.local:5000 or 192.168.1.0/24 in lower case")
}

var (
	originForm = regexp.MustCompile(`^https?://[a-z0-9.-]+(:[0-9]{1,5})?$|^https?://\[[0-9a-f:]+\](:[0-9]{1,5})?$`)
	hostForm   = regexp.MustCompile(`^[a-z0-9.-]+(:[0-9]{1,5})?$|^\[[0-9a-f:]+\](:[0-9]{1,5})?$`)
)

func checkOrigins(list string) error {
	return checkEach(list, originForm, "not an origin such as https://home.example:8443 in lower case")
}

func checkHosts(list string) error {
	return checkEach(list, hostForm, "not a host such as home.example or home.example:8443 in lower case")
}
