package configs_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"homeagent/configs"
)

func TestVault(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret.key")
	vault := configs.NewVault(path)
	if _, err := vault.Open("core.a", make([]byte, 80)); configs.CodeOf(err) != configs.CodeDamaged {
		t.Errorf("an empty record: %v", err)
	}
	if exists, err := vault.Exists(); exists || err != nil {
		t.Fatalf("before the first use: %v, %v", exists, err)
	}
	one, err := vault.Seal("core.a", "sk-one")
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || (runtime.GOOS != "windows" && info.Mode().Perm() != 0o600) {
		t.Fatalf("key file %v, %v", info, err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
	again, err := vault.Seal("core.a", "sk-one")
	if err != nil || bytes.Equal(one, again) || bytes.Contains(one, []byte("sk-one")) {
		t.Error("two records of one text are equal, or the text is in it")
	}
	reopened := configs.NewVault(path)
	if text, err := reopened.Open("core.a", one); err != nil || text != "sk-one" {
		t.Fatalf("after reopening: %q, %v", text, err)
	}
	_, err = reopened.Open("core.b", one)
	wantError(t, err, configs.CodeDamaged, "core.b")
	for i := range one {
		spoiled := bytes.Clone(one)
		spoiled[i] ^= 1
		if text, err := reopened.Open("core.a", spoiled); err == nil {
			t.Fatalf("byte %d flipped, still opened as %q", i, text)
		}
	}
	for i := range one {
		if _, err := reopened.Open("core.a", one[:i]); err == nil {
			t.Fatalf("cut to %d bytes, still opened", i)
		}
	}
	other := configs.NewVault(filepath.Join(t.TempDir(), "secret.key"))
	if _, err := other.Seal("core.x", "y"); err != nil {
		t.Fatal(err)
	}
	_, err = other.Open("core.a", one)
	wantError(t, err, configs.CodeWrongKey, "core.a")
}

func TestKeyFileIsRefused(t *testing.T) {
	cases := []struct {
		name, content string
		mode          os.FileMode
		code          configs.Code
	}{
		{"group may read", "", 0o640, configs.CodeKeyFileMode},
		{"all may read", "", 0o604, configs.CodeKeyFileMode},
		{"empty", "-", 0o600, configs.CodeKeyFileBad},
		{"cut", "homed secret key 1\nabcd\n", 0o600, configs.CodeKeyFileBad},
		{"other head", "homed secret key 2\n" + strings.Repeat("ab", 32) + "\n", 0o600, configs.CodeKeyFileBad},
		{"not hex", "homed secret key 1\n" + strings.Repeat("zz", 32) + "\n", 0o600, configs.CodeKeyFileBad},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if runtime.GOOS == "windows" && c.code == configs.CodeKeyFileMode {
				t.Skip("no mode bits")
			}
			path := filepath.Join(t.TempDir(), "secret.key")
			record, err := configs.NewVault(path).Seal("core.a", "x")
			if err != nil {
				t.Fatal(err)
			}
			if c.content != "" {
				if err := os.WriteFile(path, []byte(strings.TrimPrefix(c.content, "-")), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(path, c.mode); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(path)
			_, err = configs.NewVault(path).Open("core.a", record)
			wantError(t, err, c.code, path)
			_, err = configs.NewVault(path).Seal("core.a", "y")
			wantError(t, err, c.code)
			if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
				t.Error("a refused key file was replaced")
			}
		})
	}
	folder := filepath.Join(t.TempDir(), "dir")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := configs.NewVault(folder).Seal("core.a", "x")
	wantError(t, err, configs.CodeKeyFileBad)
}

func TestLostKeyFile(t *testing.T) {
	n := newNode(t)
	n.set("core.llm.sources.a.adapter", "openai", "core.llm.sources.a.api_key", "one",
		"core.llm.sources.b.adapter", "openai", "core.llm.sources.b.api_key", "two")
	if err := os.Rename(n.keyFile, n.keyFile+".away"); err != nil {
		t.Fatal(err)
	}
	n.restart()
	if problems := n.Problems(); len(problems) != 2 || problems[0].Err.Code != configs.CodeKeyFileMissing {
		t.Fatalf("problems %+v", problems)
	}
	if e, _ := n.Get("core.llm.sources.a.api_key"); e.Value != "unset" || e.Problem == nil {
		t.Errorf("entry %+v", e)
	}
	_, err := n.Set(nil, edits("core.llm.sources.a.api_key", "new")...)
	wantError(t, err, configs.CodeKeyFileMissing, "core.llm.sources.b.api_key")
	if _, err := os.Stat(n.keyFile); err == nil {
		t.Fatal("a new key file was made although the old one may come back")
	}
	if _, err := n.Set(nil, configs.Edit{Key: "core.llm.sources.b.api_key", Unset: true}); err != nil {
		t.Fatal(err)
	}
	n.set("core.llm.sources.a.api_key", "new")
	n.restart()
	if len(n.Problems()) != 0 || n.Snapshot().Sources()[0].APIKey.Reveal() != "new" {
		t.Errorf("after setting anew: %+v", n.Problems())
	}
}

func TestSwappedSecrets(t *testing.T) {
	n := newNode(t)
	n.set("core.llm.sources.a.adapter", "openai", "core.llm.sources.a.api_key", "one",
		"core.llm.sources.b.adapter", "openai", "core.llm.sources.b.api_key", "two")
	a, _, _ := n.secrets.Get("core.llm.sources.a.api_key")
	b, _, _ := n.secrets.Get("core.llm.sources.b.api_key")
	_ = n.secrets.Put("core.llm.sources.a.api_key", b)
	_ = n.secrets.Put("core.llm.sources.b.api_key", a)
	n.restart()
	problems := n.Problems()
	if len(problems) != 2 || problems[0].Err.Code != configs.CodeDamaged {
		t.Fatalf("problems %+v", problems)
	}
	for _, s := range n.Snapshot().Sources() {
		if s.APIKey.IsSet() {
			t.Errorf("source %s got a secret that is not its own", s.Name)
		}
	}
}

func TestSecretShowsNothing(t *testing.T) {
	const text = "sk-very-secret"
	secret := configs.NewSecret(text)
	holder := struct {
		Name string
		Key  configs.Secret
		Ptr  *configs.Secret
	}{"a", secret, &secret}
	var shown []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10s"} {
		shown = append(shown, fmt.Sprintf(verb, secret), fmt.Sprintf(verb, &secret), fmt.Sprintf(verb, holder))
	}
	text1, err1 := json.Marshal(holder)
	text2, err2 := json.Marshal(map[string]any{"k": secret})
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	var log bytes.Buffer
	for _, handler := range []slog.Handler{
		slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil),
	} {
		slog.New(handler).Info("x", "secret", secret, "holder", holder, "pointer", &secret)
	}
	source := configs.Source{Name: "a", APIKey: secret}
	shown = append(shown, string(text1), string(text2), log.String(), secret.String(), secret.GoString(), fmt.Sprintf("%+v", source))
	for _, s := range shown {
		if strings.Contains(s, text) || strings.Contains(s, fmt.Sprintf("%x", text)) || strings.Contains(s, fmt.Sprintf("%X", text)) {
			t.Errorf("shown: %s", s)
		}
	}
	if secret.Reveal() != text || !secret.IsSet() || (configs.Secret{}).IsSet() {
		t.Error("the secret is not kept")
	}
}
