package configs_test

import (
	"testing"

	"homeagent/configs"
)

func BenchmarkOpen(b *testing.B) {
	values, secrets := configs.NewMapKV(), configs.NewMapKV()
	vault := configs.NewVault("none")
	for b.Loop() {
		if _, err := configs.Open(configs.Options{Values: values, Secrets: secrets, Vault: vault}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSnapshotInt(b *testing.B) {
	r, err := configs.Open(configs.Options{Values: configs.NewMapKV(), Secrets: configs.NewMapKV(), Vault: configs.NewVault("none")})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if r.Snapshot().Int(configs.KeyAgentMaxToolTurns) != 25 {
			b.Fatal("wrong value")
		}
	}
}
