package sdksuite

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// report writes a line for each test file, and the totals. Subtests count.
func (r *results) report(out io.Writer, files map[string]string) error {
	counts := map[string]map[outcome]int{}
	count := func(file string, o outcome) {
		if counts[file] == nil {
			counts[file] = map[outcome]int{}
		}
		counts[file][o]++
	}
	for test, o := range r.outcomes {
		count(files[topLevel(test)], o)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "passed\tfailed\tskipped\t  file")
	total := map[outcome]int{}
	for _, file := range sortedKeys(counts) {
		c := counts[file]
		fmt.Fprintf(table, "%d\t%d\t%d\t  %s\n", c[passed], c[failed], c[skipped], file)
		for o, n := range c {
			total[o] += n
		}
	}
	fmt.Fprintf(table, "%d\t%d\t%d\t  all\n", total[passed], total[failed], total[skipped])
	return table.Flush()
}

// topLevel is the test that a subtest is in: "admin/TestX/a" is in "admin/TestX".
func topLevel(test string) string {
	parts := strings.Split(test, "/")
	for i, part := range parts {
		if strings.HasPrefix(part, "Test") {
			return strings.Join(parts[:i+1], "/")
		}
	}
	return test
}
