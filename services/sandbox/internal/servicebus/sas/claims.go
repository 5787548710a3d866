package sas

import (
	"strings"
	"time"
)

// Claims are what a connection has shown tokens for, by path. The zero value
// has none.
type Claims struct{ byPath map[string]Claim }

// most bounds the claims of a connection.
const most = 10_000

// Put takes a claim for an audience. It replaces the one before.
func (c *Claims) Put(audience string, claim Claim) {
	if c.byPath == nil {
		c.byPath = map[string]Claim{}
	}
	if len(c.byPath) < most {
		c.byPath[Path(audience)] = claim
	}
}

// Rights are what the claims for a path, and for what is above it, allow now.
func (c *Claims) Rights(address string, now time.Time) Rights {
	var r Rights
	for at := Path(address); ; at = at[:max(strings.LastIndexByte(at, '/'), 0)] {
		if claim, ok := c.byPath[at]; ok && claim.Expires.After(now) {
			r |= claim.Rights
		}
		if at == "" {
			return r
		}
	}
}
