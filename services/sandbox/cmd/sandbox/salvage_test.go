package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"changerelay/services/sandbox/internal/journal"
)

// count counts the documents of a sandbox, and adds some.
func count(t *testing.T, p *process, add int) int64 {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(p.vars["MONGODB_URI"]))
	must(t, err)
	defer func() { must(t, client.Disconnect(t.Context())) }()
	coll := client.Database("test").Collection("things")
	for range add {
		_, err := coll.InsertOne(t.Context(), bson.D{{Key: "text", Value: "something to be found"}})
		must(t, err)
	}
	n, err := coll.CountDocuments(t.Context(), bson.D{})
	must(t, err)
	return n
}

// TestSalvage_ADamagedDirectoryIsRefusedAndCanBeSalvaged flips a byte of an insert in the middle of the log.
func TestSalvage_ADamagedDirectoryIsRefusedAndCanBeSalvaged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := startProcess(t, "--data", dir)
	count(t, p, 20)
	must(t, p.cmd.Process.Kill())
	_ = p.cmd.Wait()
	segment := filepath.Join(dir, "mongodb", "segment-0000000000000001")
	content, err := os.ReadFile(segment)
	must(t, err)
	middle := len(content) / 2
	content[middle+bytes.Index(content[middle:], []byte("something"))] ^= 1
	must(t, os.WriteFile(segment, content, 0o600))

	var out, log bytes.Buffer
	if code := run(t.Context(), withFreePorts([]string{"--data", dir}), &out, &log); code != failed {
		t.Errorf("got exit status %d from a start on a damaged directory, want %d", code, failed)
	}
	if text := log.String(); !strings.Contains(text, segment+" at ") || !strings.Contains(text, "sandbox salvage --data") {
		t.Errorf("got %s, want the file, the offset and what to do", text)
	}
	log.Reset()
	if code := run(t.Context(), []string{"salvage", "--data", dir}, &out, &log); code != stopped {
		t.Fatalf("got exit status %d and %s from salvage, want 0", code, &log)
	}
	if text := out.String(); !strings.Contains(text, "lost: "+segment+" at ") || !strings.Contains(text, "nothing is lost") {
		t.Errorf("got %s, want what is lost of the one side, and that nothing is of the other", text)
	}
	if got := count(t, startProcess(t, "--data", dir), 0); got != 19 {
		t.Errorf("got %d documents after salvage, want the 19 others", got)
	}
}

// TestSalvage_ARecordThatCannotBeCarriedOutCanBeSalvaged adds a record that is whole and says nothing.
func TestSalvage_ARecordThatCannotBeCarriedOutCanBeSalvaged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := startProcess(t, "--data", dir)
	must(t, p.cmd.Process.Kill())
	_ = p.cmd.Wait()
	j, _, err := journal.Open(filepath.Join(dir, "servicebus"), func([]byte) error { return nil })
	must(t, err)
	j.Append([]byte{255})
	must(t, j.Close())

	var out, log bytes.Buffer
	if code := run(t.Context(), withFreePorts([]string{"--data", dir}), &out, &log); code != failed {
		t.Errorf("got exit status %d from a start with such a record, want %d", code, failed)
	}
	if text := log.String(); !strings.Contains(text, "restore operation 255") || !strings.Contains(text, "sandbox salvage --data") {
		t.Errorf("got %s, want the operation and what to do", text)
	}
	log.Reset()
	if code := run(t.Context(), []string{"salvage", "--data", dir}, &out, &log); code != stopped {
		t.Fatalf("got exit status %d and %s from salvage, want 0", code, &log)
	}
	startProcess(t, "--data", dir)
}

func TestSalvage_NeedsADirectoryWithData(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"none": {"salvage"}, "an empty one": {"salvage", "--data", t.TempDir()}} {
		var out, log bytes.Buffer
		if code := run(t.Context(), args, &out, &log); code != badConfiguration {
			t.Errorf("%s: got exit status %d and %s, want %d", name, code, &log, badConfiguration)
		}
	}
}
