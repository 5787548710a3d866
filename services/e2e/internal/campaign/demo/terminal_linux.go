package demo

import (
	"os"

	"golang.org/x/sys/unix"
)

// fileTerminal returns the width of the terminal that f is; false when it is none.
func fileTerminal(f *os.File) (width int, ok bool) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, false
	}
	if size.Col == 0 {
		return usualWidth, true
	}
	return int(size.Col), true
}
