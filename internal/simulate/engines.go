package main

import (
	"cmp"
	"slices"

	"homeagent/internal/simulate/disk"
	"homeagent/memory/approvals"
	"homeagent/memory/store"
	"homeagent/memory/timers"
	"homeagent/messages"
)

// questions reads approvals as memory/approvals does.
type questions struct{ disk *disk.Disk }

// List implements the engine of guard.
func (q questions) List(want func(*messages.Approval) bool) (list []*messages.Approval, damaged []string, err error) {
	for key, value := range q.disk.Raw(store.Approval) {
		a, err := approvals.DecodeApproval(key, value)
		switch {
		case err != nil:
			damaged = append(damaged, string(key))
		case want == nil || want(a):
			list = append(list, a)
		}
	}
	slices.SortFunc(list, approvals.Older)
	return list, damaged, nil
}

// Get implements the engine of guard.
func (q questions) Get(id string) (*messages.Approval, error) {
	list, _, _ := q.List(func(a *messages.Approval) bool { return a.GetApprovalId() == id })
	if len(list) == 0 {
		return nil, approvals.ErrNotFound
	}
	return list[0], nil
}

// Tokens implements the engine of guard; nobody has one.
func (questions) Tokens() ([]approvals.Token, int, error) { return nil, 0, nil }

// slots reads timers as memory/timers does.
type slots struct{ disk *disk.Disk }

// Load implements the engine of timers.
func (s slots) Load() (records []*messages.TimerRecord, damaged []string, err error) {
	for key, value := range s.disk.Raw(store.Timer) {
		r, err := timers.Decode(key, value)
		if err != nil {
			damaged = append(damaged, string(key))
			continue
		}
		records = append(records, r)
	}
	slices.SortFunc(records, func(a, b *messages.TimerRecord) int {
		return cmp.Compare(a.GetTimer().GetTimerId(), b.GetTimer().GetTimerId())
	})
	return records, damaged, nil
}
