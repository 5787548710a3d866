//go:build !linux

package demo

import "os"

// fileTerminal takes every character device for a terminal of the usual width.
func fileTerminal(f *os.File) (width int, ok bool) {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return 0, false
	}
	return usualWidth, true
}
