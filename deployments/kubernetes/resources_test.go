package kubernetes

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"changerelay/deployments/internal/reference"
)

const mib = 1 << 20

// measured returns the most memory in MiB that the tables of
// docs/performance.md show for a service with its defaults.
func measured(t *testing.T, service string) float64 {
	t.Helper()
	_, results, found := strings.Cut(reference.Read(t, "docs/performance.md"), "<!-- results -->")
	upTo, most, column := regexp.MustCompile(`MiB \([0-9.]+–([0-9.]+)\)`), 0.0, -1
	for line := range strings.Lines(results) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			column = -1
			continue
		}
		for i, cell := range cells {
			if strings.TrimSpace(cell) == "memory, "+service {
				column = i
			}
		}
		if column < 0 || column >= len(cells) {
			continue
		}
		if figure := upTo.FindStringSubmatch(cells[column]); figure != nil {
			value, err := strconv.ParseFloat(figure[1], 64)
			if err != nil {
				t.Fatal(err)
			}
			most = max(most, value)
		}
	}
	if !found || most == 0 {
		t.Fatalf("docs/performance.md has no memory of the %s", service)
	}
	return most
}

func TestResources_TheMemoryThatIsRequestedIsMoreThanWasMeasured(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m *manifests) {
		for _, service := range []string{"publisher", "projector"} {
			r := m.workload(t, service).pod.Spec.Containers[0].Resources
			if got, want := float64(r.Requests.Memory().Value())/mib, measured(t, service)*1.1; got < want {
				t.Errorf("%s: %.0f MiB are requested, want what was measured and a tenth more, %.0f MiB", service, got, want)
			}
			if cpu, limited := r.Limits[corev1.ResourceCPU]; limited {
				t.Errorf("%s: the processor is limited to %s, want no limit: a throttled process misses renewals", service, cpu.String())
			}
		}
	})
}

// The Go runtime's limit is a soft one, and what is not Go's comes on top: the
// container's has to be above it, for the settings of the overlay.
func TestResources_TheMemoryLimitLeavesRoomAboveThatOfGo(t *testing.T) {
	t.Parallel()
	code := reference.Read(t, "services/publisher/internal/config/memory.go")
	if !strings.Contains(code, "aside, eachPartition = 32 << 20, 16 << 20\n") || !strings.Contains(code, "alive := aside + int64(max(c.Partitions, 1)-1)*eachPartition + copies*c.MaxInFlightBytes + c.MaxInFlightBytes/windowShare\n") {
		t.Fatal("the publisher works out its Go memory limit otherwise than this test, base/publisher.yaml and docs/kubernetes.md say")
	}
	each(t, func(t *testing.T, m *manifests) {
		w := m.workload(t, "publisher")
		values, _ := m.settings(t, w)
		number := func(name string) int64 {
			n, err := strconv.ParseInt(setting(t, "publisher", values, name), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		// 0 takes what the limit leaves; who sets it has to leave room himself.
		ours := 32*mib + 16*mib*(max(number("PARTITIONS"), 1)-1) + 2*number("MAX_IN_FLIGHT_BYTES") + number("MAX_IN_FLIGHT_BYTES")/4
		if got := w.pod.Spec.Containers[0].Resources.Limits.Memory().Value(); ours > got*4/5 {
			t.Errorf("the publisher's Go memory limit is %d MiB, want it a fifth below the container's, %d MiB", ours/mib, got/mib)
		}
		for _, service := range []string{"publisher", "projector"} {
			values, _ := m.settings(t, m.workload(t, service))
			for _, name := range []string{"GOMEMLIMIT", "GOGC"} {
				if value, set := values[name]; set {
					t.Errorf("%s: %s=%s takes the place of what the service works out itself", service, name, value)
				}
			}
		}
	})
}
