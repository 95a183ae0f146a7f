// Writes the SDK of a package for one language: `sdkgen LANGUAGE DIR LOADER`, with the package's schema on standard
// input; LOADER is the address of an engine that has the schemas of other packages.
//
// The language hosts of an official CLI do this; their modules cannot be downloaded where the CLI itself is built
// from source, but the generators are part of the CLI's own module.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	golang "github.com/pulumi/pulumi/pkg/v3/codegen/go"
	"github.com/pulumi/pulumi/pkg/v3/codegen/nodejs"
	"github.com/pulumi/pulumi/pkg/v3/codegen/python"
	"github.com/pulumi/pulumi/pkg/v3/codegen/schema"
)

const tool = "pulumi"

func main() {
	if len(os.Args) != 4 {
		fail(fmt.Errorf("usage: sdkgen LANGUAGE DIR LOADER < schema.json"))
	}
	fail(write(os.Args[1], os.Args[2], os.Args[3]))
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(language, folder, address string) error {
	var spec schema.PackageSpec
	if err := json.NewDecoder(os.Stdin).Decode(&spec); err != nil {
		return err
	}
	loader, err := schema.NewLoaderClient(address)
	if err != nil {
		return err
	}
	pkg, problems, err := schema.BindSpec(spec, loader, schema.ValidationOptions{})
	if err != nil {
		return err
	}
	if problems.HasErrors() {
		return problems
	}
	files, err := generate(language, pkg, loader)
	if err != nil {
		return err
	}
	for name, text := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func generate(language string, pkg *schema.Package, loader schema.ReferenceLoader) (map[string][]byte, error) {
	switch language {
	case "nodejs":
		return nodejs.GeneratePackage(tool, pkg, nil, nil, true, loader)
	case "go":
		return golang.GeneratePackage(tool, pkg, nil)
	case "python":
		return python.GeneratePackage(tool, pkg, nil, loader)
	}
	return nil, fmt.Errorf("no SDK for %s; known are nodejs, go, python", language)
}
