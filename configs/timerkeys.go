package configs

func timerKeys() []Key {
	return []Key{
		{
			Name: KeyTimersMax, Type: TypeInt, Unit: "timers", Default: "1000", Min: "1", Max: "10000", Step: "1",
			English: "Timers", Chinese: "定时器上限", Category: CategoryAgent, Apply: Live,
			Description: "How many timers there may be, of all agents together. One more is refused.",
		},
		{
			Name: KeyTimersMinInterval, Type: TypeDuration, Default: "1m", Min: "1s", Max: "1d",
			English: "Shortest interval", Chinese: "最短间隔", Category: CategoryAgent, Apply: Live,
			Description: "The shortest time between two runs that a timer which is set may have. Timers that are there keep theirs.",
		},
		{
			Name: KeyTimersGrace, Type: TypeDuration, Default: "1m", Min: "1s", Max: "1h",
			English: "Grace of a timer", Chinese: "定时宽限", Category: CategoryAgent, Apply: Live,
			Description: "How late a timer may run without counting as missed. What comes later, since the node was off or asleep, runs or is skipped as the timer says.",
		},
		{
			Name: KeyTimersKeepDone, Type: TypeDuration, Default: "7d", Min: "0", Max: "366d",
			English: "Keep timers that are done", Chinese: "已完成定时器保留", Category: CategoryAgent, Apply: Live,
			Description: "How long a timer without a further run is still listed before it is dropped.",
		},
	}
}
