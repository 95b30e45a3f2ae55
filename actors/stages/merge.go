package stages

import (
	"strings"

	"google.golang.org/protobuf/proto"

	"homeagent/messages"
)

// merge returns before with the changes of after that the stage permits, and the names of fields that were changed
// without permission. Both contexts stay as they are; the result shares parts with them.
func merge(s messages.Stage, handler string, before, after *messages.StageContext) (*messages.StageContext, string) {
	out := proto.CloneOf(before)
	if s != messages.Stage_STAGE_AFTER_OUTPUT {
		out.Response = after.GetResponse()
		mergeNote(out, handler, after)
	}
	switch s {
	case messages.Stage_STAGE_ON_INPUT:
		out.InputText = after.GetInputText()
	case messages.Stage_STAGE_PRE_ACTION:
		out.Messages = after.GetMessages()
	case messages.Stage_STAGE_POST_ACTION:
		out.ModelText = after.GetModelText()
		out.Calls = after.GetCalls()
	case messages.Stage_STAGE_BEFORE_TOOLCALL:
		mergeCalls(out, after)
	case messages.Stage_STAGE_AFTER_TOOLCALL:
		mergeResults(out, after)
	case messages.Stage_STAGE_BEFORE_OUTPUT:
		out.FinalText = after.GetFinalText()
	default: // nothing may be written
	}
	return out, strings.Join(differing(out, after), ", ")
}

// mergeNote takes the handler's own note.
func mergeNote(out *messages.StageContext, handler string, after *messages.StageContext) {
	note, has := after.GetExtra()[handler]
	if has {
		if out.GetExtra() == nil {
			out.Extra = map[string]string{}
		}
		out.Extra[handler] = note
	} else {
		delete(out.GetExtra(), handler)
	}
}

// mergeCalls takes arguments and denials of the given calls. A denial is never taken back.
func mergeCalls(out, after *messages.StageContext) {
	for _, inv := range out.GetCalls() {
		for _, changed := range after.GetCalls() {
			if changed.GetCallId() != inv.GetCallId() {
				continue
			}
			inv.ArgumentsJson = changed.GetArgumentsJson()
			if inv.GetDenied() == "" {
				inv.Denied = changed.GetDenied()
			}
		}
	}
}

// mergeResults takes all but the ids of the given results.
func mergeResults(out, after *messages.StageContext) {
	for i, r := range out.GetResults() {
		for _, changed := range after.GetResults() {
			if changed.GetCallId() != r.GetCallId() {
				continue
			}
			merged := proto.CloneOf(changed)
			merged.Name = r.GetName()
			out.Results[i] = merged
		}
	}
}

// differing names the fields in which a handler's copy still differs after the merge: what it may not write.
func differing(merged, after *messages.StageContext) []string {
	if proto.Equal(merged, after) {
		return nil
	}
	var names []string
	a, b := merged.ProtoReflect(), after.ProtoReflect()
	fields := a.Descriptor().Fields()
	for i := range fields.Len() {
		if f := fields.Get(i); !a.Get(f).Equal(b.Get(f)) {
			names = append(names, string(f.Name()))
		}
	}
	return names
}
