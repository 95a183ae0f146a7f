package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/printer"
	"go/token"
	"maps"
	"strconv"
	"strings"
)

type object = map[string]any

// deepest is how far functions call each other, which some schemas do to any depth.
const deepest = 40

var depth int

func evaluate(in *files, locals map[string]any, expression ast.Expr) any {
	switch one := expression.(type) {
	case *ast.BasicLit:
		return literal(one)
	case *ast.ParenExpr:
		return evaluate(in, locals, one.X)
	case *ast.Ident:
		return identifier(in, locals, one)
	case *ast.SelectorExpr:
		return selected(in, locals, one)
	case *ast.UnaryExpr:
		value := evaluate(in, locals, one.X)
		if number, ok := value.(int64); ok && one.Op == token.SUB {
			return -number
		}
		return value
	case *ast.BinaryExpr:
		return binary(one, evaluate(in, locals, one.X), evaluate(in, locals, one.Y))
	case *ast.CompositeLit:
		return composite(in, locals, one)
	case *ast.CallExpr:
		return called(in, locals, one)
	case *ast.FuncLit:
		return object{"func": "", "source": text(one)}
	}
	return source(expression)
}

func binary(one *ast.BinaryExpr, left, right any) any {
	if first, ok := left.(string); ok && one.Op == token.ADD {
		if second, ok := right.(string); ok {
			return first + second
		}
	}
	first, isFirst := left.(int64)
	second, isSecond := right.(int64)
	if !isFirst || !isSecond {
		return source(one)
	}
	switch one.Op {
	case token.ADD:
		return first + second
	case token.SUB:
		return first - second
	case token.GTR:
		return first > second
	case token.GEQ:
		return first >= second
	case token.LSS:
		return first < second
	case token.LEQ:
		return first <= second
	case token.EQL:
		return first == second
	case token.NEQ:
		return first != second
	}
	return source(one)
}

func text(node ast.Node) string {
	var found bytes.Buffer
	_ = printer.Fprint(&found, set, node)
	return found.String()
}

func source(node ast.Node) any { return object{"source": text(node)} }

func literal(one *ast.BasicLit) any {
	switch one.Kind {
	case token.STRING:
		value, _ := strconv.Unquote(one.Value)
		return value
	case token.INT:
		value, _ := strconv.ParseInt(one.Value, 0, 64)
		return value
	case token.FLOAT:
		value, _ := strconv.ParseFloat(one.Value, 64)
		return value
	}
	return source(one)
}

func identifier(in *files, locals map[string]any, one *ast.Ident) any {
	if value, ok := locals[one.Name]; ok {
		return value
	}
	switch one.Name {
	case "true", "false":
		return one.Name == "true"
	case "nil":
		return nil
	}
	if value, ok := in.values[one.Name]; ok {
		return evaluate(in, nil, value)
	}
	if _, ok := in.funcs[one.Name]; ok {
		return object{"func": in.name + "." + one.Name}
	}
	return source(one)
}

func selected(in *files, locals map[string]any, one *ast.SelectorExpr) any {
	if owner, ok := one.X.(*ast.Ident); ok {
		if locals[owner.Name] == nil && in.values[owner.Name] == nil {
			if other := packages[owner.Name]; other != nil {
				return identifier(other, nil, one.Sel)
			}
			return object{"func": owner.Name + "." + one.Sel.Name}
		}
	}
	if value, ok := evaluate(in, locals, one.X).(object); ok {
		if field, ok := value[one.Sel.Name]; ok {
			return field
		}
	}
	return source(one)
}

func composite(in *files, locals map[string]any, one *ast.CompositeLit) any {
	_, isMap := one.Type.(*ast.MapType)
	_, isList := one.Type.(*ast.ArrayType)
	if isList {
		found := []any{}
		for _, element := range one.Elts {
			found = append(found, evaluate(in, locals, element))
		}
		return found
	}
	found := object{}
	if kind, ok := one.Type.(*ast.SelectorExpr); ok {
		found["$"] = kind.Sel.Name
	}
	for _, element := range one.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			return source(one)
		}
		name, isName := pair.Key.(*ast.Ident)
		if isName && name.Name == "SchemaFunc" {
			found["Schema"] = result(in, pair.Value)
		} else if isName && !isMap {
			found[name.Name] = evaluate(in, locals, pair.Value)
		} else if key, ok := evaluate(in, locals, pair.Key).(string); ok {
			found[key] = evaluate(in, locals, pair.Value)
		}
	}
	return found
}

func called(in *files, locals map[string]any, one *ast.CallExpr) any {
	arguments := []any{}
	for _, argument := range one.Args {
		arguments = append(arguments, evaluate(in, locals, argument))
	}
	owner, name, fun := in, "", one.Fun
	if generic, ok := fun.(*ast.IndexExpr); ok {
		fun = generic.X
	}
	switch function := fun.(type) {
	case *ast.Ident:
		name = function.Name
	case *ast.SelectorExpr:
		name = text(function)
		if other := packages[strings.Split(name, ".")[0]]; other != nil {
			owner, name = other, function.Sel.Name
		}
	default:
		return source(one)
	}
	switch name {
	case "MergeSchemas":
		return merged(arguments)
	case "ResourceIamMember", "ResourceIamBinding", "ResourceIamAuditConfig":
		base := map[string]string{"ResourceIamMember": "IamMemberBaseSchema", "ResourceIamBinding": "iamBindingSchema",
			"ResourceIamAuditConfig": "iamAuditConfigSchema"}[name]
		own := evaluate(owner, nil, owner.values[base])
		return object{"Schema": merged([]any{own, arguments[0]})}
	case "fmt.Sprintf":
		if format, ok := arguments[0].(string); ok {
			return fmt.Sprintf(format, arguments[1:]...)
		}
	case "strings.Join":
		if parts, ok := arguments[0].([]any); ok {
			return strings.Join(strings.Fields(strings.Trim(fmt.Sprint(parts), "[]")), arguments[1].(string))
		}
	case "maps.Copy":
		if into, ok := arguments[0].(object); ok {
			if from, ok := arguments[1].(object); ok {
				maps.Copy(into, from)
			}
		}
		return nil
	case "regexp.MustCompile":
		return arguments[0]
	case "append":
		if parts, ok := arguments[0].([]any); ok {
			return append(append([]any{}, parts...), arguments[1:]...)
		}
	}
	once, isCall := owner.values[name].(*ast.CallExpr)
	if isCall && text(once.Fun) == "sync.OnceValue" {
		return result(owner, once.Args[0])
	}
	declared := owner.funcs[name]
	if declared != nil && owner.name != "verify" && isData(declared) && depth < deepest {
		depth++
		defer func() { depth-- }()
		return returned(owner, declared, arguments)
	}
	if owner != in || declared != nil {
		name = owner.name + "." + name
	}
	return object{"func": name, "arguments": arguments}
}

// result calls a function without arguments, by its name or its literal.
func result(in *files, function ast.Expr) any {
	if maker, ok := function.(*ast.FuncLit); ok {
		value, _ := block(in, map[string]any{}, maker.Body.List)
		return value
	}
	return called(in, nil, &ast.CallExpr{Fun: function})
}

// isData returns whether a function returns a schema, or parts of one.
func isData(declared *ast.FuncDecl) bool {
	if declared.Type.Results == nil || len(declared.Type.Results.List) != 1 {
		return false
	}
	kind := text(declared.Type.Results.List[0].Type)
	if _, last, ok := strings.Cut(kind, "schema."); ok && last != "ResourceData" && !strings.HasSuffix(last, "Func") {
		return true
	}
	return kind == "[]string" || kind == "string"
}

func merged(parts []any) any {
	found := object{}
	for _, part := range parts {
		if fields, ok := part.(object); ok {
			maps.Copy(found, fields)
		}
	}
	return found
}

// returned evaluates the body of a function: assignments, conditions on arguments, and its first return.
func returned(in *files, declared *ast.FuncDecl, arguments []any) any {
	locals, index := map[string]any{}, 0
	for _, field := range declared.Type.Params.List {
		for _, name := range field.Names {
			if index < len(arguments) {
				locals[name.Name] = arguments[index]
			}
			index++
		}
	}
	if value, ok := block(in, locals, declared.Body.List); ok {
		return value
	}
	return source(declared.Name)
}

func block(in *files, locals map[string]any, statements []ast.Stmt) (any, bool) {
	for _, statement := range statements {
		switch one := statement.(type) {
		case *ast.ReturnStmt:
			return evaluate(in, locals, one.Results[0]), true
		case *ast.AssignStmt:
			assign(in, locals, one)
		case *ast.DeclStmt:
			for _, spec := range one.Decl.(*ast.GenDecl).Specs {
				if values, ok := spec.(*ast.ValueSpec); ok && len(values.Values) > 0 {
					locals[values.Names[0].Name] = evaluate(in, locals, values.Values[0])
				}
			}
		case *ast.IfStmt:
			if evaluate(in, locals, one.Cond) == true {
				if value, ok := block(in, locals, one.Body.List); ok {
					return value, true
				}
			}
		case *ast.RangeStmt:
			each(in, locals, one)
		case *ast.ExprStmt:
			evaluate(in, locals, one.X)
		}
	}
	return nil, false
}

func assign(in *files, locals map[string]any, one *ast.AssignStmt) {
	value := evaluate(in, locals, one.Rhs[0])
	switch target := one.Lhs[0].(type) {
	case *ast.Ident:
		locals[target.Name] = value
	case *ast.IndexExpr:
		into, isMap := evaluate(in, locals, target.X).(object)
		if key, ok := evaluate(in, locals, target.Index).(string); ok && isMap {
			into[key] = value
		}
	case *ast.SelectorExpr:
		if into, ok := evaluate(in, locals, target.X).(object); ok {
			into[target.Sel.Name] = value
		}
	}
}

func each(in *files, locals map[string]any, one *ast.RangeStmt) {
	items, ok := evaluate(in, locals, one.X).(object)
	if !ok {
		return
	}
	for key, item := range items {
		if name, ok := one.Key.(*ast.Ident); ok {
			locals[name.Name] = key
		}
		if name, ok := one.Value.(*ast.Ident); ok {
			locals[name.Name] = item
		}
		block(in, locals, one.Body.List)
	}
}
