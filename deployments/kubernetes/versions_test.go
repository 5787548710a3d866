package kubernetes

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// olderVersions returns the directories in which the module k8s.io/api keeps
// each kind of earlier minor versions of Kubernetes with all its fields.
func olderVersions(t *testing.T) []string {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/api").Output()
	if err != nil {
		t.Fatal(err)
	}
	versions, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "testdata", "v*"))
	if err != nil || len(versions) < 3 {
		t.Fatalf("got the versions %v (%v), want three", versions, err)
	}
	return versions
}

// complete returns an object of a kind with every field that a version has;
// nothing where the version does not know the kind.
func complete(t *testing.T, version, apiVersion, kind string) map[string]any {
	t.Helper()
	group, v, found := strings.Cut(apiVersion, "/")
	if !found {
		group, v = "core", apiVersion
	}
	text, err := os.ReadFile(filepath.Join(version, group+"."+v+"."+kind+".yaml"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var object map[string]any
	if err := errors.Join(err, yaml.Unmarshal(text, &object)); err != nil {
		t.Fatal(err)
	}
	return object
}

// unknown returns the paths of what has no place in the complete object. A map
// with names of one's own, such as labels, is shown there with one entry, whose
// key is the field's name and "Key".
func unknown(path string, got, all any) []string {
	var paths []string
	switch got := got.(type) {
	case map[string]any:
		fields, _ := all.(map[string]any)
		name := path[strings.LastIndexByte(path, '.')+1:]
		if _, own := fields[strings.TrimSuffix(name, "[]")+"Key"]; own {
			return nil
		}
		for _, field := range slices.Sorted(maps.Keys(got)) {
			if _, is := fields[field]; !is {
				paths = append(paths, path+"."+field)
				continue
			}
			paths = append(paths, unknown(path+"."+field, got[field], fields[field])...)
		}
	case []any:
		elements, _ := all.([]any)
		for _, element := range got {
			if len(elements) == 0 {
				return append(paths, path)
			}
			paths = append(paths, unknown(path+"[]", element, elements[0])...)
		}
	}
	return paths
}

// Clusters run older versions than the types that the manifests are decoded
// into, and a field that they do not know is dropped without a word.
func TestVersions_EveryFieldIsKnownToTheOlderVersionsOfKubernetes(t *testing.T) {
	t.Parallel()
	older := olderVersions(t)
	each(t, func(t *testing.T, m *manifests) {
		for _, text := range m.texts {
			var object map[string]any
			if err := yaml.Unmarshal(text, &object); err != nil {
				t.Fatal(err)
			}
			apiVersion, kind := object["apiVersion"].(string), object["kind"].(string)
			if strings.HasPrefix(apiVersion, "monitoring.coreos.com/") || strings.HasPrefix(apiVersion, "keda.sh/") {
				continue // not of Kubernetes itself
			}
			for _, version := range older {
				all := complete(t, version, apiVersion, kind)
				if all == nil {
					t.Errorf("Kubernetes %s has no %s %s", filepath.Base(version), apiVersion, kind)
					continue
				}
				if paths := unknown(kind, object, all); len(paths) > 0 {
					t.Errorf("Kubernetes %s does not know %v", filepath.Base(version), paths)
				}
			}
		}
	})
}

func TestVersions_AFieldThatAVersionDoesNotKnowIsFound(t *testing.T) {
	t.Parallel()
	for _, version := range olderVersions(t) {
		all := complete(t, version, "batch/v1", "CronJob")
		for text, want := range map[string][]string{
			`{metadata: {labels: {a: b}}, spec: {suspend: true, jobTemplate: {spec: {template: {spec: {containers: [{name: a, resources: {limits: {memory: 1Gi}}}]}}}}}}`: nil,
			`{spec: {suspended: true}}`: {"CronJob.spec.suspended"},
			`{spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: a}, {nome: b}]}}}}}}`: {"CronJob.spec.jobTemplate.spec.template.spec.containers[].nome"},
		} {
			var object map[string]any
			if err := yaml.Unmarshal([]byte(text), &object); err != nil {
				t.Fatal(err)
			}
			if got := unknown("CronJob", object, all); !slices.Equal(got, want) {
				t.Errorf("%s: got %v of %s, want %v", filepath.Base(version), got, text, want)
			}
		}
		if complete(t, version, "batch/v9", "CronJob") != nil {
			t.Errorf("%s knows batch/v9", filepath.Base(version))
		}
	}
}
