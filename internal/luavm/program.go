package luavm

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// Program is a compiled script. It is immutable and can be shared between
// goroutines and pools.
type Program struct {
	file  string
	proto *lua.FunctionProto
}

// File is the name the script was compiled under.
func (p *Program) File() string { return p.file }

// Compile compiles source; file is the name that errors carry. The error is an
// *Error that wraps ErrSyntax and names the line.
func Compile(file string, source []byte) (*Program, error) {
	source = bytes.TrimPrefix(source, []byte("\xef\xbb\xbf"))
	chunk, err := parse.Parse(bytes.NewReader(source), file)
	if err != nil {
		return nil, syntax(file, source, err)
	}
	bound(chunk)
	proto, err := lua.Compile(chunk, file)
	if err != nil {
		return nil, syntax(file, source, err)
	}
	return &Program{file: file, proto: proto}, nil
}

func syntax(file string, source []byte, err error) error {
	e := &Error{File: file, Message: err.Error(), cause: ErrSyntax}
	var pe *parse.Error
	var ce *lua.CompileError
	switch {
	case errors.As(err, &pe):
		e.Line = pe.Pos.Line
		e.Message = pe.Message
		if pe.Pos.Line == parse.EOF {
			// The parser gives no line for the end of the file.
			e.Line = bytes.Count(bytes.TrimRight(source, "\n"), []byte("\n")) + 1
			e.Message += " at the end of the file"
		} else if pe.Token != "" {
			e.Message = fmt.Sprintf("%s near %q", pe.Message, strings.TrimSpace(pe.Token))
		}
	case errors.As(err, &ce):
		e.Line, e.Message = ce.Line, ce.Message
	}
	return e
}
