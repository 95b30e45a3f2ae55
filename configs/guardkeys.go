package configs

import "regexp"

// The keys of the policy about tool calls; GuardKey makes the name of a rule.
const (
	KeyGuardExpiry    = "core.guard.approval_expiry"
	KeyGuardRetention = "core.guard.approval_retention"
	KeyGuardLimit     = "core.guard.approval_limit"
	KeyGuardDeciders  = "core.guard.deciders"
	KeyGuardTool      = "core.guard.tool." + wildcard
)

// GuardPrefix is what the names of all keys of the policy start with.
const GuardPrefix = "core.guard."

// The verdicts of a rule.
const (
	GuardAllow = "allow"
	GuardAsk   = "ask"
	GuardDeny  = "deny"
)

// GuardTainted is the row of rules that hold, besides those of the principals, in turns that have read foreign text.
const GuardTainted = "tainted"

// GuardKey returns the dotted name of the rule for calls of a class ("read", "write", "exec", "net", "send", "device",
// "memory") on behalf of a kind of principal ("owner", "person", "token", "node", "agent", "system", "stranger"), or in
// tainted turns.
func GuardKey(row, class string) string { return GuardPrefix + row + "." + class }

type guardRow struct {
	name, english, chinese, who string
	// rules are the defaults in the order of guardClasses.
	rules [7]string
}

var guardClasses = [7]struct{ name, english, chinese, what string }{
	{"read", "read", "读取", "read what the node may see"},
	{"write", "write", "写入", "change files or the state of the node; a tool that does not say what it does counts as such"},
	{"exec", "programs", "执行程序", "run programs"},
	{"net", "network", "网络", "talk to other machines"},
	{"send", "send", "发送", "send something to people"},
	{"device", "devices", "设备", "use a device: camera, microphone, location, screen"},
	{"memory", "memory", "记忆", "read or write the agent's memory"},
}

var guardRows = []guardRow{
	{
		"owner", "Owner", "主人", "a turn on behalf of the owner",
		[7]string{GuardAllow, GuardAllow, GuardAsk, GuardAllow, GuardAllow, GuardAsk, GuardAllow},
	},
	{
		"person", "Person", "他人", "a turn on behalf of another person",
		[7]string{GuardAllow, GuardAsk, GuardDeny, GuardAllow, GuardAsk, GuardDeny, GuardAllow},
	},
	{
		"token", "Program", "令牌", "a turn on behalf of a program that holds a named token",
		[7]string{GuardAllow, GuardAsk, GuardDeny, GuardAllow, GuardAsk, GuardDeny, GuardAllow},
	},
	{
		"node", "Node", "节点", "a turn on behalf of a paired node",
		[7]string{GuardAllow, GuardAsk, GuardDeny, GuardAllow, GuardAsk, GuardDeny, GuardAllow},
	},
	{
		"agent", "Resident", "常驻代理", "a turn of a resident, besides the rules for those who asked for it, or on behalf of an agent",
		[7]string{GuardAllow, GuardAllow, GuardAsk, GuardAllow, GuardAllow, GuardAsk, GuardAllow},
	},
	{
		"system", "System", "系统", "a turn that the node itself began, such as that of a timer",
		[7]string{GuardAllow, GuardAsk, GuardAsk, GuardAllow, GuardAllow, GuardAsk, GuardAllow},
	},
	{
		"stranger", "Stranger", "陌生人", "a turn on behalf of somebody unknown",
		[7]string{GuardDeny, GuardDeny, GuardDeny, GuardDeny, GuardDeny, GuardDeny, GuardDeny},
	},
	{
		GuardTainted, "Foreign text", "外来内容", "any turn that has read foreign text (a page, a file, a stranger's message), besides the rules for those who asked for it",
		[7]string{GuardAllow, GuardAsk, GuardAsk, GuardAsk, GuardAsk, GuardAsk, GuardAllow},
	},
}

// guardKeys declares the policy about tool calls.
func guardKeys() []Key {
	var keys []Key
	options := []string{GuardAllow, GuardAsk, GuardDeny}
	for _, row := range guardRows {
		for i, class := range guardClasses {
			keys = append(keys, Key{
				Name: GuardKey(row.name, class.name), Type: TypeEnum, Options: options, Default: row.rules[i], Required: true,
				English: row.english + ": " + class.english, Chinese: row.chinese + "：" + class.chinese,
				Description: "What holds in " + row.who + " for tools that " + class.what + ". Of all rules for a call the strictest holds.",
			})
		}
	}
	keys = append(keys, Key{
		Name: KeyGuardTool, Type: TypeEnum, Options: options,
		English: "One tool", Chinese: "单个工具",
		Description: "What holds for the tool with this name, in lower case: deny and ask make the other rules stricter; allow lets run what " +
			"would be asked about, in turns with foreign text too, and never what is denied.",
	})
	keys = append(keys, approvalKeys()...)
	for i := range keys {
		keys[i].Category, keys[i].Apply = CategoryGuard, Live
	}
	return keys
}

func approvalKeys() []Key {
	return []Key{
		{
			Name: KeyGuardExpiry, Type: TypeDuration, Default: "7d", Min: "0", Max: "365d",
			English: "Approval expiry", Chinese: "审批有效期",
			Description: "How long a call waits for a person's word before it counts as denied. Zero means for ever. Those that wait already keep their time.",
		},
		{
			Name: KeyGuardRetention, Type: TypeDuration, Default: "30d", Min: "1d", Max: "3650d",
			English: "Approval retention", Chinese: "审批保留时间",
			Description: "How long a decided approval is kept, to be looked at.",
		},
		{
			Name: KeyGuardLimit, Type: TypeInt, Unit: "approvals", Default: "50", Min: "1", Max: "1000", Step: "1",
			English: "Waiting approvals", Chinese: "待审批上限",
			Description: "How many calls of one agent may wait for a person's word at one time; further ones are denied.",
		},
		{
			Name: KeyGuardDeciders, Type: TypeList, Check: checkDeciders,
			English: "Deciders", Chinese: "审批人",
			Description: "Ids of people, such as person:anna, who may decide approvals besides the owner. Programs, agents and nodes never may.",
		},
	}
}

var principalForm = regexp.MustCompile(`^[a-z0-9_-]+:[^\s,]{1,200}$`)

func checkDeciders(list string) error {
	return checkEach(list, principalForm, "not the id of a person such as person:anna")
}
