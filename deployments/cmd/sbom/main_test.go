package main

import (
	"bytes"
	"encoding/json"
	"runtime/debug"
	"slices"
	"testing"
)

func TestSbom_EveryLinkedModuleIsListed(t *testing.T) {
	t.Parallel()
	got := describe(&debug.BuildInfo{
		GoVersion: "go1.26.8", Path: "example/cmd/relay",
		Deps: []*debug.Module{
			{Path: "example.org/plain", Version: "v1.0.0"},
			{Path: "example.org/old", Version: "v1.0.0", Replace: &debug.Module{Path: "example.org/new", Version: "v2.0.0"}},
			{Path: "relay/contract", Version: "v0.0.0", Replace: &debug.Module{Path: "../contract"}},
		},
	}, "7")
	want := []component{
		{"library", "std", "go1.26.8", "pkg:golang/std@go1.26.8"},
		{"library", "example.org/plain", "v1.0.0", "pkg:golang/example.org/plain@v1.0.0"},
		{"library", "example.org/new", "v2.0.0", "pkg:golang/example.org/new@v2.0.0"},
		{"library", "relay/contract", "7", ""},
	}
	if !slices.Equal(got.Components, want) {
		t.Errorf("components: got %v, want %v", got.Components, want)
	}
	if want := (component{Type: "application", Name: "relay", Version: "7"}); got.Metadata.Component != want {
		t.Errorf("described: got %v, want %v", got.Metadata.Component, want)
	}
}

func TestSbom_TheCommandReadsABinary(t *testing.T) {
	t.Parallel()
	self, err := bytesOf(t, "--version", "9", "/proc/self/exe")
	if err != 0 {
		t.Fatalf("exit: got %d, want 0", err)
	}
	var d document
	if err := json.Unmarshal(self, &d); err != nil || d.Format != "CycloneDX" || d.Metadata.Component.Version != "9" {
		t.Errorf("got %s, %v, want a CycloneDX document of version 9", self, err)
	}
	if _, code := bytesOf(t, "main.go"); code != 1 {
		t.Errorf("exit for a text: got %d, want 1", code)
	}
	if _, code := bytesOf(t); code != 2 {
		t.Errorf("exit without a binary: got %d, want 2", code)
	}
}

func bytesOf(t *testing.T, args ...string) (stdout []byte, code int) {
	t.Helper()
	var out, errors bytes.Buffer
	code = run(args, &out, &errors)
	return out.Bytes(), code
}
