package configs_test

import (
	"slices"
	"testing"

	"homeagent/configs"
)

func TestPluginKeys(t *testing.T) {
	keys := []configs.Key{
		{
			Name: "plugin.web.port", Type: configs.TypeInt, Default: "80", Min: "1", Max: "65535", English: "Port", Chinese: "端口",
			Category: configs.CategoryPlugin, Description: "The port.", Apply: configs.Live,
		},
		{
			Name: "plugin.web.token", Type: configs.TypeSecret, English: "Token", Chinese: "令牌",
			Category: configs.CategoryPlugin, Description: "The token.", Apply: configs.Live,
		},
		{
			Name: "plugin.web.mode", Type: configs.TypeEnum, Default: "a", Options: []string{"a", "b"}, English: "Mode", Chinese: "模式",
			Category: configs.CategoryPlugin, Description: "The mode.", Apply: configs.Restart,
		},
	}
	n := newNode(t, "HOMED_PLUGIN_WEB_PORT=81")
	change, err := n.Register("web", keys)
	if err != nil || len(change.Changed) != 2 {
		t.Fatalf("register: %+v, %v", change, err)
	}
	if n.Snapshot().Int("plugin.web.port") != 81 {
		t.Error("the variable of a plugin key is not taken up")
	}
	n.set("plugin.web.token", "t0k", "plugin.web.mode", "b")
	if n.Snapshot().Secret("plugin.web.token").Reveal() != "t0k" || n.Snapshot().String("plugin.web.mode") != "a" {
		t.Error("a secret is not in force, or a restart key is")
	}
	if _, err := n.Unregister("web"); err != nil {
		t.Fatal(err)
	}
	_, err = n.Get("plugin.web.port")
	wantError(t, err, configs.CodeUnknownKey)
	if _, err := n.Register("web", keys); err != nil || n.Snapshot().String("plugin.web.mode") != "b" {
		t.Errorf("after the plugin's restart mode is %q, %v", n.Snapshot().String("plugin.web.mode"), err)
	}
	_, err = n.Register("other", keys)
	wantError(t, err, configs.CodeBadKey, "declared by that plugin")
	_, err = n.Unregister(configs.Core)
	wantError(t, err, configs.CodeBadKey)

	bad := newNode(t, "HOMED_PLUGIN_WEB_PORT=0")
	_, err = bad.Register("web", keys)
	wantError(t, err, configs.CodeBadValue, "HOMED_PLUGIN_WEB_PORT")
	_, err = bad.Get("plugin.web.port")
	wantError(t, err, configs.CodeUnknownKey)
}

func TestCollisions(t *testing.T) {
	key := func(name string) configs.Key {
		return configs.Key{
			Name: name, Type: configs.TypeInt, English: "x", Chinese: "x", Description: "x",
			Category: configs.CategoryNode, Apply: configs.Live,
		}
	}
	cases := []struct{ a, b, says string }{
		{"core.a.b", "core.a.b", "the same name"},
		{"core.a.b_c", "core.a_b.c", "HOMED_CORE_A_B_C"},
		{"core.a.<name>.b", "core.a.x.b", "the same name"},
		{"core.a.<name>.b", "core.a_x.b", "HOMED_CORE_A_X_B"},
		{"core.a.<name>", "core.a.b.<name>.c", "names below core.a."},
	}
	for _, c := range cases {
		_, err := configs.Open(configs.Options{
			Values: configs.NewMapKV(), Secrets: configs.NewMapKV(), Vault: configs.NewVault("none"),
			Keys: []configs.Key{key(c.a), key(c.b)},
		})
		wantError(t, err, configs.CodeCollision, c.says)
	}
}

func TestBadDeclarations(t *testing.T) {
	good := configs.Key{
		Name: "core.a.b", Type: configs.TypeInt, English: "x", Chinese: "x", Description: "x",
		Category: configs.CategoryNode, Apply: configs.Live,
	}
	cases := map[string]func(k *configs.Key){
		"one segment":      func(k *configs.Key) { k.Name = "core.a" },
		"foreign space":    func(k *configs.Key) { k.Name = "other.a.b" },
		"upper case":       func(k *configs.Key) { k.Name = "core.a.B" },
		"two wildcards":    func(k *configs.Key) { k.Name = "core.<name>.<name>" },
		"type":             func(k *configs.Key) { k.Type = "number" },
		"no apply":         func(k *configs.Key) { k.Apply = "" },
		"no Chinese":       func(k *configs.Key) { k.Chinese = "" },
		"category":         func(k *configs.Key) { k.Category = "x" },
		"options":          func(k *configs.Key) { k.Options = []string{"a"} },
		"enum without":     func(k *configs.Key) { k.Type = configs.TypeEnum },
		"default":          func(k *configs.Key) { k.Default = "x" },
		"default below":    func(k *configs.Key) { k.Default, k.Min = "1", "2" },
		"minimum":          func(k *configs.Key) { k.Min = "x" },
		"bound of a bool":  func(k *configs.Key) { k.Type, k.Min = configs.TypeBool, "1" },
		"secret's default": func(k *configs.Key) { k.Type, k.Default = configs.TypeSecret, "x" },
	}
	for name, spoil := range cases {
		k := good
		spoil(&k)
		_, err := configs.Open(configs.Options{
			Values: configs.NewMapKV(), Secrets: configs.NewMapKV(), Vault: configs.NewVault("none"), Keys: []configs.Key{k},
		})
		if configs.CodeOf(err) != configs.CodeBadKey {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRestartKeysOfThings(t *testing.T) {
	keys := []configs.Key{{
		Name: "plugin.web.site.<name>.port", Type: configs.TypeInt, Default: "80", English: "Port", Chinese: "端口",
		Category: configs.CategoryPlugin, Description: "The port.", Apply: configs.Restart,
	}}
	n := newNode(t)
	if _, err := n.Register("web", keys); err != nil {
		t.Fatal(err)
	}
	change := n.set("plugin.web.site.home.port", "81")
	if n.Snapshot().Int("plugin.web.site.home.port") != 80 || !slices.Equal(change.Restart, []string{"plugin.web.site.home.port"}) {
		t.Errorf("a thing added later is in force at once; restart %q", change.Restart)
	}
	if _, err := n.Register("web", keys); err != nil || n.Snapshot().Int("plugin.web.site.home.port") != 81 {
		t.Errorf("not in force after the plugin's start: %v", err)
	}
}
