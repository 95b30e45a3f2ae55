package luavm

import "github.com/yuin/gopher-lua/ast"

// concatName is the global that stands for the .. operator. It is no
// identifier of the language, so no script can name or replace it.
const concatName = "(concat)"

// bound replaces each chain of .. by one call of the bounded concatenation:
// the interpreter's own operator cannot be limited, and s = s .. s doubles
// memory with every instruction.
func bound(stmts []ast.Stmt) {
	for _, s := range stmts {
		boundStmt(s)
	}
}

func boundStmt(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.AssignStmt:
		boundList(s.Lhs)
		boundList(s.Rhs)
	case *ast.LocalAssignStmt:
		boundList(s.Exprs)
	case *ast.FuncCallStmt:
		s.Expr = boundExpr(s.Expr)
	case *ast.DoBlockStmt:
		bound(s.Stmts)
	case *ast.WhileStmt:
		s.Condition = boundExpr(s.Condition)
		bound(s.Stmts)
	case *ast.RepeatStmt:
		s.Condition = boundExpr(s.Condition)
		bound(s.Stmts)
	case *ast.IfStmt:
		s.Condition = boundExpr(s.Condition)
		bound(s.Then)
		bound(s.Else)
	case *ast.NumberForStmt:
		s.Init, s.Limit = boundExpr(s.Init), boundExpr(s.Limit)
		if s.Step != nil {
			s.Step = boundExpr(s.Step)
		}
		bound(s.Stmts)
	case *ast.GenericForStmt:
		boundList(s.Exprs)
		bound(s.Stmts)
	case *ast.FuncDefStmt:
		bound(s.Func.Stmts)
	case *ast.ReturnStmt:
		boundList(s.Exprs)
	}
}

func boundList(exprs []ast.Expr) {
	for i := range exprs {
		exprs[i] = boundExpr(exprs[i])
	}
}

func boundExpr(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.StringConcatOpExpr:
		return concat(e)
	case *ast.AttrGetExpr:
		e.Object, e.Key = boundExpr(e.Object), boundExpr(e.Key)
	case *ast.TableExpr:
		for _, f := range e.Fields {
			if f.Key != nil {
				f.Key = boundExpr(f.Key)
			}
			f.Value = boundExpr(f.Value)
		}
	case *ast.FuncCallExpr:
		if e.Func != nil {
			e.Func = boundExpr(e.Func)
		}
		if e.Receiver != nil {
			e.Receiver = boundExpr(e.Receiver)
		}
		boundList(e.Args)
	case *ast.LogicalOpExpr:
		e.Lhs, e.Rhs = boundExpr(e.Lhs), boundExpr(e.Rhs)
	case *ast.RelationalOpExpr:
		e.Lhs, e.Rhs = boundExpr(e.Lhs), boundExpr(e.Rhs)
	case *ast.ArithmeticOpExpr:
		e.Lhs, e.Rhs = boundExpr(e.Lhs), boundExpr(e.Rhs)
	case *ast.UnaryMinusOpExpr:
		e.Expr = boundExpr(e.Expr)
	case *ast.UnaryNotOpExpr:
		e.Expr = boundExpr(e.Expr)
	case *ast.UnaryLenOpExpr:
		e.Expr = boundExpr(e.Expr)
	case *ast.FunctionExpr:
		bound(e.Stmts)
	}
	return e
}

// concat flattens a .. (b .. c) into one call. The last operand is cut to one
// value (AdjustRet), as the operator would.
func concat(e *ast.StringConcatOpExpr) ast.Expr {
	var parts []ast.Expr
	var last ast.Expr = e
	for {
		op, ok := last.(*ast.StringConcatOpExpr)
		if !ok {
			parts = append(parts, boundExpr(last))
			break
		}
		parts = append(parts, boundExpr(op.Lhs))
		last = op.Rhs
	}
	if call, ok := parts[len(parts)-1].(*ast.FuncCallExpr); ok {
		call.AdjustRet = true
	}
	if dots, ok := parts[len(parts)-1].(*ast.Comma3Expr); ok {
		dots.AdjustRet = true
	}
	name := &ast.IdentExpr{Value: concatName}
	call := &ast.FuncCallExpr{Func: name, Args: parts, AdjustRet: true}
	line, end := e.Line(), e.LastLine()
	if line == 0 {
		line = parts[0].Line()
	}
	if end < line {
		end = line
	}
	name.SetLine(line)
	name.SetLastLine(line)
	call.SetLine(line)
	call.SetLastLine(end)
	return call
}
