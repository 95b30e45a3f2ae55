package kernel

import (
	"time"

	"homeagent/actors/ledger"
	"homeagent/configs"
	ledgerengine "homeagent/memory/ledger"
	"homeagent/memory/store"
)

// brokenGrace is how long a node goes on after its store broke: probes and people learn why, and what has its answer
// already gets it out. Nothing new is taken meanwhile.
const brokenGrace = 5 * time.Second

// storeBroken ends the node: what it would answer from now on is no more than that it cannot. Whoever supervises the
// process starts it anew over what is on the disk.
func (w *world) storeBroken(err error) {
	grace := w.opt.Grace
	if grace == 0 {
		grace = brokenGrace
	}
	time.AfterFunc(grace, func() {
		w.lose(&LostError{Path: ledger.Kind, Kind: ledger.Kind, Failure: err.Error(), Once: true})
	})
}

// policyOf is what the ledger may remove, and how large the store may become.
func policyOf(s *configs.Snapshot) ledgerengine.Policy {
	return ledgerengine.Policy{
		Journal: s.Duration(configs.KeyRetentionJournal), Tasks: s.Duration(configs.KeyRetentionTasks),
		Keys: s.Duration(configs.KeyRetentionKeys), Outputs: s.Duration(configs.KeyRetentionOutputs),
		Aside: s.Duration(configs.KeyRetentionAside), Budget: s.Size(configs.KeyStoreBudget),
	}
}

// tryLedger runs the guards over what a store holds.
func tryLedger(db *store.DB) error {
	_, err := ledgerengine.Open(db, ledgerengine.Options{})
	return err
}
