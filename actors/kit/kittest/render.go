package kittest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"homeagent/actors/kit"
	"homeagent/messages"
)

// renderEvent writes an event as one line: the message first, then who sent it and its correlation.
func renderEvent(e kit.Event) string {
	line := renderAny(e.Msg)
	if e.From != nil {
		line += " from=" + renderAddress(e.From)
	}
	if e.Corr != "" {
		line += " corr=" + e.Corr
	}
	return line
}

// renderEffect writes an effect as one line. Send and Reply lead with the message; everything else is its fields.
func renderEffect(f kit.Effect) string {
	switch f := f.(type) {
	case kit.Send:
		return "Send " + renderAny(f.Msg) + " to=" + renderAddress(f.To) + corr(f.Corr)
	case kit.Reply:
		if f.To == nil {
			return "Reply " + renderAny(f.Msg) + " to nobody"
		}
		return "Reply " + renderAny(f.Msg) + " to=" + renderAddress(f.To) + corr(f.Corr)
	default:
		return renderAny(f)
	}
}

func corr(c string) string {
	if c == "" {
		return ""
	}
	return " corr=" + c
}

// messageOf is the message an effect sends, or nil.
func messageOf(f kit.Effect) any {
	switch f := f.(type) {
	case kit.Send:
		return f.Msg
	case kit.Reply:
		return f.Msg
	case kit.Publish:
		return f.Event
	case kit.Spawn:
		return f.Params
	default:
		return nil
	}
}

func renderAddress(a *messages.Address) string {
	if a == nil {
		return "nobody"
	}
	s := a.GetPath()
	if s == "" {
		s = "(root)"
	}
	if a.GetNode() != "" {
		s = a.GetNode() + ":" + s
	}
	if a.GetEpoch() != 0 {
		s += "#" + strconv.FormatUint(a.GetEpoch(), 10)
	}
	return s
}

// renderMessage writes a message as its short name and compact JSON, with fields in the order of the schema.
func renderMessage(m proto.Message) string {
	name := string(m.ProtoReflect().Descriptor().Name())
	if !m.ProtoReflect().IsValid() {
		return name + "(nil)"
	}
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return name + "(" + err.Error() + ")"
	}
	var b bytes.Buffer // protojson varies its white space on purpose
	if err := json.Compact(&b, text); err != nil {
		return name + "(" + err.Error() + ")"
	}
	return name + b.String()
}

func renderAny(v any) string {
	if v == nil {
		return "nil"
	}
	var b strings.Builder
	writeValue(&b, reflect.ValueOf(v), 0)
	return b.String()
}

var (
	addressType  = reflect.TypeFor[*messages.Address]()
	messageType  = reflect.TypeFor[proto.Message]()
	errorType    = reflect.TypeFor[error]()
	durationType = reflect.TypeFor[time.Duration]()
	timeType     = reflect.TypeFor[time.Time]()
)

// maxDepth ends the writing of private values that hold themselves.
const maxDepth = 12

// writeValue writes any value in a form that depends on its content alone: no pointers, maps sorted, zero fields left
// out, functions and channels by kind.
func writeValue(b *strings.Builder, v reflect.Value, depth int) {
	if depth > maxDepth {
		b.WriteString("…")
		return
	}
	if !v.IsValid() {
		b.WriteString("nil")
		return
	}
	if v.CanInterface() && writeKnown(b, v) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			b.WriteString("nil")
			return
		}
		writeValue(b, v.Elem(), depth+1)
	case reflect.Struct:
		writeStruct(b, v, depth)
	case reflect.Slice, reflect.Array:
		writeSlice(b, v, depth)
	case reflect.Map:
		writeMap(b, v, depth)
	case reflect.String:
		b.WriteString(strconv.Quote(v.String()))
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		b.WriteString(v.Kind().String())
	default:
		fmt.Fprintf(b, "%v", v)
	}
}

// writeKnown writes the types that have a better form than their fields.
func writeKnown(b *strings.Builder, v reflect.Value) bool {
	if (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) && v.IsNil() {
		return false
	}
	switch t := v.Type(); {
	case t == addressType:
		b.WriteString(renderAddress(v.Interface().(*messages.Address)))
	case t == durationType:
		b.WriteString(v.Interface().(time.Duration).String())
	case t == timeType:
		b.WriteString(v.Interface().(time.Time).UTC().Format(time.RFC3339Nano))
	case t.Implements(messageType):
		b.WriteString(renderMessage(v.Interface().(proto.Message)))
	case t.Implements(errorType):
		b.WriteString(strconv.Quote(v.Interface().(error).Error()))
	default:
		return false
	}
	return true
}

func writeStruct(b *strings.Builder, v reflect.Value, depth int) {
	t := v.Type()
	b.WriteString(t.Name() + "{")
	first := true
	for i := range t.NumField() {
		if t.Field(i).Anonymous && t.Field(i).Type == reflect.TypeFor[kit.Private]() {
			continue
		}
		if v.Field(i).IsZero() {
			continue
		}
		if !first {
			b.WriteString(" ")
		}
		first = false
		b.WriteString(t.Field(i).Name + "=")
		writeValue(b, v.Field(i), depth+1)
	}
	b.WriteString("}")
}

func writeSlice(b *strings.Builder, v reflect.Value, depth int) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		fmt.Fprintf(b, "%q", v.Bytes())
		return
	}
	b.WriteString("[")
	for i := range v.Len() {
		if i > 0 {
			b.WriteString(" ")
		}
		writeValue(b, v.Index(i), depth+1)
	}
	b.WriteString("]")
}

func writeMap(b *strings.Builder, v reflect.Value, depth int) {
	entries := make([]string, 0, v.Len())
	for it := v.MapRange(); it.Next(); {
		var e strings.Builder
		writeValue(&e, it.Key(), depth+1)
		e.WriteString(":")
		writeValue(&e, it.Value(), depth+1)
		entries = append(entries, e.String())
	}
	sort.Strings(entries)
	b.WriteString("map[" + strings.Join(entries, " ") + "]")
}
