package configs

// Builtin is a built-in plugin with its keys; the node registers them before its
// first actor.
type Builtin struct {
	// Plugin is its name.
	Plugin string
	// Keys are all it has, enabled among them.
	Keys []Key
}

// Builtins returns the built-in plugins in the order of the documentation. The
// slice belongs to the caller.
func Builtins() []Builtin {
	return []Builtin{{Plugin: "files", Keys: filesKeys()}, {Plugin: "web", Keys: webKeys()}}
}

func enabledKey(plugin, english, chinese string) Key {
	return Key{
		Name: PluginEnabled(plugin), Type: TypeBool, Default: "true",
		English: english, Chinese: chinese, Category: CategoryPlugin, Apply: Live,
		Description: "Whether the plugin " + plugin + " serves its tools; off keeps its settings.",
	}
}

func filesKeys() []Key {
	return []Key{
		enabledKey("files", "Files", "文件"),
		{
			Name: KeyFilesRoots, Type: TypeList,
			English: "Folders", Chinese: "文件夹", Category: CategoryPlugin, Apply: Live,
			Description: "Absolute paths of the folders in which the agent may list, read and write files; nothing outside of them is reached, by links neither. Unset means the folder files in the data folder. A folder that holds the node's own data is refused.",
		},
		{
			Name: KeyFilesMaxRead, Type: TypeSize, Default: "64KiB", Min: "1KiB", Max: "128KiB", Step: "1KiB",
			English: "Most of a file per read", Chinese: "单次读取上限", Category: CategoryPlugin, Apply: Live,
			Description: "How much of a file one call may read; the rest is read by further calls.",
		},
		{
			Name: KeyFilesMaxWrite, Type: TypeSize, Default: "1MiB", Min: "1KiB", Max: "16MiB", Step: "64KiB",
			English: "Largest write", Chinese: "单次写入上限", Category: CategoryPlugin, Apply: Live,
			Description: "How much one call may write.",
		},
		{
			Name: KeyFilesMaxEntries, Type: TypeInt, Unit: "entries", Default: "500", Min: "1", Max: "1000", Step: "50",
			English: "Longest listing", Chinese: "列表上限", Category: CategoryPlugin, Apply: Live,
			Description: "How many entries of a folder one call may list.",
		},
	}
}

func webKeys() []Key {
	return []Key{
		enabledKey("web", "Web pages", "网页"),
		{
			Name: KeyWebMaxBytes, Type: TypeSize, Default: "2MiB", Min: "16KiB", Max: "32MiB", Step: "256KiB",
			English: "Largest page", Chinese: "网页大小上限", Category: CategoryPlugin, Apply: Live,
			Description: "How much of a page is read, decoded; what is beyond is not looked at.",
		},
		{
			Name: KeyWebMaxText, Type: TypeSize, Default: "48KiB", Min: "1KiB", Max: "128KiB", Step: "4KiB",
			English: "Most text of a page per call", Chinese: "单次网页文本上限", Category: CategoryPlugin, Apply: Live,
			Description: "How much text of a page one call may bring; the rest is read by further calls.",
		},
		{
			Name: KeyWebTimeout, Type: TypeDuration, Default: "30s", Min: "1s", Max: "5m",
			English: "Page time limit", Chinese: "网页超时", Category: CategoryPlugin, Apply: Live,
			Description: "How long one page may take, redirects included.",
		},
	}
}
