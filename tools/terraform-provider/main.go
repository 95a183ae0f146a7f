// Command provider_facts prints the schemas of resource types of a Terraform provider as JSON.
//
// It evaluates the composite literals of the source with go/ast and compiles nothing:
//
//	go run . CHECKOUT/google-beta [TYPE...]
//	go run . CHECKOUT/internal [TYPE...]
//
// Without types it prints all. A value that is only known at run time is printed as {"source": "..."}, a function
// as {"func": "name"}, the Go type of a composite literal under "$". "MayReplace" lists the properties that a
// function replaces on a condition.
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

// files is one Go package: its functions and methods, its variables and constants, and where types are registered.
type files struct {
	name    string
	funcs   map[string]*ast.FuncDecl
	methods map[string]*ast.FuncDecl
	values  map[string]ast.Expr
	inits   []*ast.FuncDecl
	marked  map[string]*ast.FuncDecl
}

var (
	set      = token.NewFileSet()
	packages = map[string]*files{}
)

// helpers are folders of functions and constants, beside the services, under the names by which they are imported.
var helpers = map[string]string{"verify": "verify", "tpgresource": "tpgresource", "tpgiamresource": "tpgiamresource",
	"tftags": "tags", "framework": "framework", "sdkv2": "sdkv2", "names": "../names"}

func load(name, folder string) error {
	found := &files{name, map[string]*ast.FuncDecl{}, map[string]*ast.FuncDecl{}, map[string]ast.Expr{}, nil,
		map[string]*ast.FuncDecl{}}
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return err
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
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
			found.declare(one)
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

func (found *files) declare(one *ast.FuncDecl) {
	if one.Body == nil {
		return
	}
	if one.Recv != nil {
		found.methods[strings.TrimPrefix(text(one.Recv.List[0].Type), "*")+"."+one.Name.Name] = one
		return
	}
	found.funcs[one.Name.Name] = one
	if one.Name.Name == "init" {
		found.inits = append(found.inits, one)
	}
	for _, mark := range []string{`@SDKResource("`, `@FrameworkResource("`} {
		for _, rest := range strings.Split(one.Doc.Text(), mark)[1:] {
			name, _, _ := strings.Cut(rest, `"`)
			found.marked[name] = one
		}
	}
}

// registered returns the schemas of the types that a package registers.
func (found *files) registered(wanted func(string) bool) object {
	schemas := object{}
	for name, maker := range found.marked {
		if wanted(name) {
			schemas[name] = found.made(maker)
		}
	}
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
			if isKind && fields["Schema"] != nil && strings.HasSuffix(kind.Sel.Name, "Resource") {
				if name, ok := evaluate(found, nil, fields["Name"]).(string); ok && wanted(name) {
					schemas[name] = described(found, fields["Schema"])
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
	folders, _ := filepath.Glob(filepath.Join(os.Args[1], "service*", "*"))
	paths := map[string]string{}
	for _, folder := range folders {
		paths[filepath.Base(folder)] = folder
	}
	for name, folder := range helpers {
		paths[name] = filepath.Join(os.Args[1], folder)
	}
	for name, folder := range paths {
		if err := load(name, folder); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	schemas := map[string]any{}
	for folder := range paths {
		found := packages[folder].registered(func(name string) bool { return len(wanted) == 0 || wanted[name] })
		for name, one := range found {
			schemas[name] = one
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(schemas); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
