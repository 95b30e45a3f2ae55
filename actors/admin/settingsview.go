package admin

import (
	"encoding/json"
	"strconv"

	"homeagent/messages"
	"homeagent/messages/api"
)

// scalar writes the text of a value as JSON: a number or boolean where its type is one and the text reads as such.
func scalar(kind, text string) json.RawMessage {
	switch kind {
	case "int":
		if _, err := strconv.ParseInt(text, 10, 64); err == nil {
			return json.RawMessage(text)
		}
	case "float":
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			if b, err := json.Marshal(f); err == nil { // NaN and infinities have no JSON
				return b
			}
		}
	case "bool":
		if b, err := strconv.ParseBool(text); err == nil {
			return json.RawMessage(strconv.FormatBool(b))
		}
	}
	b, _ := json.Marshal(text) // a string always encodes
	return b
}

func value(v *messages.ConfigValue) api.Value {
	out := api.Value{
		Key: v.GetKey(), Value: scalar(v.GetType(), v.GetValue()), Origin: v.GetOrigin(), Type: v.GetType(),
		Unit: v.GetUnit(), Default: scalar(v.GetType(), v.GetDefault()), Legal: v.GetLegal(),
		Description: v.GetDescription(), NameEN: v.GetNameEn(), NameZH: v.GetNameZh(), Category: v.GetCategory(),
		Secret: v.GetSecret(), Live: v.GetLive(),
	}
	if v.GetWaiting() {
		out.Pending = scalar(v.GetType(), v.GetPending())
	}
	return out
}

func source(s *messages.SourceSpec) api.Source {
	return api.Source{
		Name: s.GetName(), Adapter: s.GetAdapter(), BaseURL: s.GetBaseUrl(), Model: s.GetModel(),
		Priority: int(s.GetPriority()), MaxConcurrent: int(s.GetMaxConcurrent()),
		ContextWindow: int(s.GetContextWindow()), Enabled: s.GetEnabled(),
	}
}

func sourceView(s *messages.SourceView) api.SourceView {
	return api.SourceView{
		Source: source(s.GetSpec()), State: s.GetState(), CoolingUntil: moment(s.GetCoolingUntilUs()),
		LastFailure: failure(s.GetLastFailure()), Active: int(s.GetActive()), Calls: s.GetCalls(),
		Failed: s.GetFailed(), HasKey: s.GetHasKey(), Keys: some(s.GetKeys(), sourceKey),
		Vision: s.GetSpec().GetVision(), Audio: s.GetSpec().GetAudio(), Tools: s.GetSpec().GetTools(),
	}
}

func sourceKey(k *messages.KeyView) api.SourceKey {
	return api.SourceKey{
		Place: int(k.GetPlace()), State: k.GetState(), CoolingUntil: moment(k.GetCoolingUntilUs()), LastFailure: failure(k.GetLastFailure()),
	}
}

func tested(t *messages.SourceTested) *api.Tested {
	return &api.Tested{
		Works: t.GetWorks(), Text: t.GetText(), Model: t.GetModel(), TookMS: t.GetTookMs(),
		Failure: failure(t.GetFailure()), Saved: t.GetSaved(),
	}
}

func memoryEvent(e *messages.Event) api.MemoryEvent {
	return api.MemoryEvent{
		EventID: e.GetEventId(), Kind: word(e.GetKind(), "EVENT_KIND_"), TaskID: e.GetTaskId(), Agent: e.GetAgent(),
		Channel: e.GetChannel(), Conversation: e.GetConversation(), Principal: e.GetPrincipal().GetId(),
		Content: list(e.GetBlocks(), func(b *messages.Block) api.Block { return block(b.GetContent()) }),
		At:      moment(e.GetAtUs()), Taint: word(e.GetTaint(), "TAINT_"), Tools: e.GetTools(), Interrupt: e.GetInterrupt(),
	}
}

func fact(f *messages.Fact) api.Fact {
	return api.Fact{
		FactID: f.GetFactId(), Subject: f.GetSubject(), Predicate: f.GetPredicate(), Object: f.GetObject(),
		Confidence: f.GetConfidence(), SubjectType: f.GetSubjectType(), ObjectType: f.GetObjectType(),
		Source: f.GetSource(), ValidFrom: moment(f.GetValidFromUs()), ValidTo: moment(f.GetValidToUs()),
		Learned: moment(f.GetLearnedUs()), Functional: f.GetFunctional(),
	}
}

// factMessage is the way back.
func factMessage(f api.Fact) *messages.Fact {
	out := &messages.Fact{
		Subject: f.Subject, Predicate: f.Predicate, Object: f.Object, Confidence: f.Confidence,
		SubjectType: f.SubjectType, ObjectType: f.ObjectType, Source: f.Source, Functional: f.Functional,
	}
	if !f.ValidFrom.IsZero() {
		out.ValidFromUs = f.ValidFrom.UnixMicro()
	}
	if !f.ValidTo.IsZero() {
		out.ValidToUs = f.ValidTo.UnixMicro()
	}
	return out
}

func memory(a *messages.MemoryAnswer) *api.Memory {
	out := &api.Memory{
		Items: list(a.GetItems(), recalled), Events: list(a.GetEvents(), memoryEvent), Facts: list(a.GetFacts(), fact),
	}
	if f := a.GetFigures(); f != nil {
		out.Figures = &api.MemoryFigures{
			Events: f.GetEvents(), Facts: f.GetFacts(), Terms: f.GetTerms(), Dictionary: f.GetDictionary(),
			VectorSpace: f.GetVectorSpace(), Vectors: f.GetVectors(),
		}
	}
	return out
}

func ledger(f *messages.LedgerFigures) *api.Ledger {
	u := f.GetUpkeep()
	return &api.Ledger{
		Open: f.GetOpen(), Accepted: f.GetAccepted(), Ended: f.GetEnded(), Bytes: f.GetBytes(),
		FreeBytes: f.GetFreeBytes(), DiskLow: f.GetDiskLow(), Syncs: f.GetSyncs(), Broken: f.GetBroken(),
		BudgetBytes: u.GetBudgetBytes(), Full: u.GetFull(), Pressure: int(u.GetPressure()), Damage: u.GetDamage(),
		Spaces: some(u.GetSpaces(), func(s *messages.SpaceSize) api.Space { return api.Space{Name: s.GetSpace(), Bytes: s.GetBytes()} }),
	}
}
