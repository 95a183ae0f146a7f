package main

import (
	"go/ast"
	"strings"
)

// described evaluates the expression of a resource of SDK 2.
func described(in *files, expression ast.Expr) any {
	resource, ok := evaluate(in, nil, expression).(object)
	if !ok {
		return nil
	}
	found := object{"Schema": resource["Schema"], "CustomizeDiff": resource["CustomizeDiff"]}
	if call, ok := expression.(*ast.CallExpr); ok {
		if maker, owner := function(in, call.Fun); maker != nil {
			found["MayReplace"] = conditional(owner, maker)
		}
	}
	return found
}

// made evaluates the function of a resource that a comment registers: one of SDK 2, or a type of the framework.
func (found *files) made(maker *ast.FuncDecl) any {
	if maker.Type.Results != nil && strings.HasSuffix(text(maker.Type.Results.List[0].Type), "schema.Resource") {
		return described(found, &ast.CallExpr{Fun: maker.Name})
	}
	var method *ast.FuncDecl
	receiver := ""
	ast.Inspect(maker, func(node ast.Node) bool {
		literal, ok := node.(*ast.CompositeLit)
		if ok && method == nil {
			receiver = text(literal.Type)
			method = found.methods[receiver+".Schema"]
		}
		return true
	})
	if method == nil {
		return nil
	}
	response := object{}
	locals := map[string]any{}
	fields := method.Type.Params.List
	for _, name := range fields[len(fields)-1].Names {
		locals[name.Name] = response
	}
	block(found, locals, method.Body.List)
	schema, _ := response["Schema"].(object)
	if schema == nil {
		return nil
	}
	result := object{"Attributes": schema["Attributes"], "Blocks": schema["Blocks"]}
	if plan := found.methods[receiver+".ModifyPlan"]; plan != nil {
		result["MayReplace"] = planned(found, plan)
	}
	return result
}

// function finds a declared function by the expression of a call.
func function(in *files, expression ast.Expr) (*ast.FuncDecl, *files) {
	switch one := expression.(type) {
	case *ast.Ident:
		return in.funcs[one.Name], in
	case *ast.SelectorExpr:
		if owner, ok := one.X.(*ast.Ident); ok && packages[owner.Name] != nil {
			return packages[owner.Name].funcs[one.Sel.Name], packages[owner.Name]
		}
	}
	return nil, nil
}

// conditional lists the properties that the function CustomizeDiff of a resource replaces on a condition.
func conditional(in *files, maker *ast.FuncDecl) []any {
	found := []any{}
	ast.Inspect(maker, func(node ast.Node) bool {
		pair, ok := node.(*ast.KeyValueExpr)
		if ok && text(pair.Key) == "CustomizeDiff" {
			found = append(found, forced(in, pair.Value, map[*ast.FuncDecl]bool{})...)
		}
		return true
	})
	return found
}

func forced(in *files, root ast.Node, seen map[*ast.FuncDecl]bool) []any {
	found := []any{}
	ast.Inspect(root, func(node ast.Node) bool {
		switch one := node.(type) {
		case *ast.CallExpr:
			name := text(one.Fun)
			if strings.HasPrefix(name, "customdiff.ForceNewIf") || strings.HasSuffix(name, ".ForceNew") && len(one.Args) == 1 {
				found = append(found, evaluate(in, nil, one.Args[0]))
			}
		case *ast.Ident, *ast.SelectorExpr:
			declared, owner := function(in, node.(ast.Expr))
			if declared != nil && !seen[declared] && len(seen) < 40 {
				seen[declared] = true
				found = append(found, forced(owner, declared.Body, seen)...)
			}
		}
		return true
	})
	return found
}

// planned lists the properties that a method ModifyPlan adds to those that replace the resource.
func planned(in *files, method *ast.FuncDecl) []any {
	found := []any{}
	ast.Inspect(method, func(node ast.Node) bool {
		assigned, ok := node.(*ast.AssignStmt)
		if !ok || !strings.HasSuffix(text(assigned.Lhs[0]), ".RequiresReplace") {
			return true
		}
		ast.Inspect(assigned, func(inner ast.Node) bool {
			call, ok := inner.(*ast.CallExpr)
			if ok && text(call.Fun) == "path.Root" {
				found = append(found, evaluate(in, nil, call.Args[0]))
			}
			return true
		})
		return true
	})
	return found
}
