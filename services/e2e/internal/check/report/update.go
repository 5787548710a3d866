package report

import (
	"fmt"
	"os"
	"strings"
)

// Update writes text into the document at path, between its marks begin and end.
func Update(path, begin, end, text string) error {
	whole, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("update the report: %w", err)
	}
	before, rest, found := strings.Cut(string(whole), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return fmt.Errorf("update the report: %s has no %s with %s after it", path, begin, end)
	}
	if err := os.WriteFile(path, []byte(before+begin+"\n\n"+text+"\n"+end+after), 0o644); err != nil {
		return fmt.Errorf("update the report: %w", err)
	}
	return nil
}
