// Command sbom prints what a Go binary is made of, as a CycloneDX 1.5 document
// (https://cyclonedx.org/docs/1.5/json/), from what the linker wrote into it:
//
//	sbom --version 1.2.3 bin/publisher
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"runtime/debug"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("sbom", flag.ContinueOnError)
	flags.SetOutput(stderr)
	version := flags.String("version", "devel", "`version` of the binary")
	if flags.Parse(args) != nil || flags.NArg() != 1 {
		fmt.Fprintln(stderr, "usage: sbom [--version VERSION] BINARY")
		return 2
	}
	info, err := buildinfo.ReadFile(flags.Arg(0))
	if err != nil {
		fmt.Fprintf(stderr, "sbom: read what %s is made of: %s\n", flags.Arg(0), err)
		return 1
	}
	encoder := json.NewEncoder(stdout)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(describe(info, *version)); err != nil {
		fmt.Fprintln(stderr, "sbom:", err)
		return 1
	}
	return 0
}

// document is the part of a CycloneDX document that is used here.
type document struct {
	Format      string      `json:"bomFormat"`
	SpecVersion string      `json:"specVersion"`
	Version     int         `json:"version"`
	Metadata    metadata    `json:"metadata"`
	Components  []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl,omitempty"`
}

// describe lists the standard library and every module that is linked in, as
// they were replaced. Modules of this repository have no address to be found at.
func describe(info *debug.BuildInfo, version string) document {
	d := document{
		Format: "CycloneDX", SpecVersion: "1.5", Version: 1,
		Metadata:   metadata{component{Type: "application", Name: path.Base(info.Path), Version: version}},
		Components: []component{library("std", info.GoVersion)},
	}
	for _, dep := range info.Deps {
		if dep.Replace == nil {
			d.Components = append(d.Components, library(dep.Path, dep.Version))
			continue
		}
		if dep.Replace.Version == "" {
			d.Components = append(d.Components, component{Type: "library", Name: dep.Path, Version: version})
			continue
		}
		d.Components = append(d.Components, library(dep.Replace.Path, dep.Replace.Version))
	}
	return d
}

func library(name, version string) component {
	return component{Type: "library", Name: name, Version: version, PURL: "pkg:golang/" + name + "@" + version}
}
