package configs_test

import (
	"testing"

	"homeagent/configs"
	"homeagent/configs/kvtest"
)

func TestMapKV(t *testing.T) {
	kvtest.Run(t, func(*testing.T) configs.KV { return configs.NewMapKV() })
}
