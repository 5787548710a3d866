package shell_test

import (
	"os/exec"
	"testing"

	"changerelay/services/projector/internal/shell"
)

// A shell reads each word as it was, and does nothing else.
func TestWord_IsReadAsItWas(t *testing.T) {
	t.Parallel()
	for _, word := range []string{
		"", "order-7", "/orders_v2", "a b", "a;echo b", "$(echo b)", "`echo b`", "it's", `a"b`, `a\b`, "a\nb", "*", "~", "a=b", "a|b>c<d&", "!!", "#a", "ä", "a\x01b",
	} {
		got, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s. "+shell.Word(word)).Output()
		if err != nil || string(got) != word+"." {
			t.Errorf("%q as %s: got %q and %v", word, shell.Word(word), got, err)
		}
	}
}

func TestWord_ThatIsPlainStaysPlain(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"order-7", "/orders_v2", "a:b@c,d+1.2"} {
		if got := shell.Word(word); got != word {
			t.Errorf("%q: got %s", word, got)
		}
	}
}
