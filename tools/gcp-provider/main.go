// Command provider_facts prints the schemas of resource types of a Terraform provider as JSON.
//
// It evaluates the composite literals of the source with go/ast and compiles nothing:
//
//	go run . CHECKOUT/google-beta TYPE...
//
// A value that is only known at run time is printed as {"source": "..."}, a function as {"func": "name"}.
package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// files is one Go package: its functions, its variables and constants, and where types are registered.
type files struct {
	name   string
	funcs  map[string]*ast.FuncDecl
	values map[string]ast.Expr
	inits  []*ast.FuncDecl
}

var (
	set      = token.NewFileSet()
	packages = map[string]*files{}
)

func load(folder string) error {
	found := &files{filepath.Base(folder), map[string]*ast.FuncDecl{}, map[string]ast.Expr{}, nil}
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return err
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		found.add(file)
	}
	packages[found.name] = found
	return nil
}

func (found *files) add(file *ast.File) {
	for _, declared := range file.Decls {
		switch one := declared.(type) {
		case *ast.FuncDecl:
			if one.Recv != nil || one.Body == nil {
				continue
			}
			found.funcs[one.Name.Name] = one
			if one.Name.Name == "init" {
				found.inits = append(found.inits, one)
			}
		case *ast.GenDecl:
			for _, spec := range one.Specs {
				values, ok := spec.(*ast.ValueSpec)
				if !ok {
					continue
				}
				for index, name := range values.Names {
					if index < len(values.Values) {
						found.values[name.Name] = values.Values[index]
					}
				}
			}
		}
	}
}

// registered returns the schema expressions of the wanted types in a package.
func (found *files) registered(wanted map[string]bool) map[string]ast.Expr {
	schemas := map[string]ast.Expr{}
	for _, init := range found.inits {
		ast.Inspect(init, func(node ast.Node) bool {
			literal, ok := node.(*ast.CompositeLit)
			if !ok {
				return true
			}
			fields := map[string]ast.Expr{}
			for _, element := range literal.Elts {
				if pair, ok := element.(*ast.KeyValueExpr); ok {
					fields[fmt.Sprint(pair.Key)] = pair.Value
				}
			}
			kind, isKind := fields["Type"].(*ast.SelectorExpr)
			if isKind && fields["Schema"] != nil && strings.HasSuffix(kind.Sel.Name, "TypeResource") ||
				isKind && fields["Schema"] != nil && strings.HasSuffix(kind.Sel.Name, "TypeIAMResource") {
				if name, ok := evaluate(found, nil, fields["Name"]).(string); ok && wanted[name] {
					schemas[name] = fields["Schema"]
				}
			}
			return true
		})
	}
	return schemas
}

func main() {
	wanted := map[string]bool{}
	for _, name := range os.Args[2:] {
		wanted[name] = true
	}
	folders, _ := filepath.Glob(filepath.Join(os.Args[1], "services", "*"))
	for _, name := range []string{"verify", "tpgresource", "tpgiamresource"} {
		folders = append(folders, filepath.Join(os.Args[1], name))
	}
	for _, folder := range folders {
		if err := load(folder); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	schemas := map[string]any{}
	for _, found := range packages {
		for name, expression := range found.registered(wanted) {
			if resource, ok := evaluate(found, nil, expression).(object); ok {
				schemas[name] = object{"Schema": resource["Schema"], "CustomizeDiff": resource["CustomizeDiff"]}
			}
		}
	}
	text, err := json.Marshal(schemas)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(string(text))
}
