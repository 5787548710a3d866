package scram

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	client "github.com/xdg-go/scram"
)

// converse runs a client of the driver's own module against the server.
func converse(t *testing.T, c Credentials, user, password string) error {
	t.Helper()
	hash := client.SHA256
	if c.Mechanism == SHA1 {
		hash = client.SHA1
	}
	secret, err := c.Mechanism.Secret(user, password)
	if err != nil {
		t.Fatal(err)
	}
	made, err := hash.NewClientUnprepped(user, secret, "")
	if err != nil {
		t.Fatal(err)
	}
	side := made.NewConversation()
	first, err := side.Step("")
	if err != nil {
		t.Fatal(err)
	}
	conversation, answer, err := Start([]byte(first), func(string) (Credentials, error) { return c, nil })
	if err != nil {
		return err
	}
	final, err := side.Step(string(answer))
	if err != nil {
		t.Fatal(err)
	}
	proof, err := conversation.Finish([]byte(final))
	if err != nil {
		return err
	}
	if _, err := side.Step(string(proof)); err != nil || !side.Valid() {
		t.Errorf("got a server's proof that the client refuses: %v", err)
	}
	return nil
}

// credentials are those of a user in a test.
func credentials(t testing.TB, m Mechanism, user, password string) Credentials {
	t.Helper()
	secret, err := m.Secret(user, password)
	if err != nil {
		t.Fatal(err)
	}
	c, err := m.NewCredentials(secret, MinIterations)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSCRAM_AClientProvesItsPasswordAndTheServerItsKey(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		mechanism Mechanism
		password  string
	}{
		"plain":            {SHA256, "pencil"},
		"not ASCII":        {SHA256, "pässwörd\u00a0x"},
		"the older one":    {SHA1, "pencil"},
		"older, not ASCII": {SHA1, "pässwörd\u00a0x"},
	} {
		const user = "a,b=c"
		c := credentials(t, test.mechanism, user, test.password)
		if err := converse(t, c, user, test.password); err != nil {
			t.Errorf("%s: got %v with the right password", name, err)
		}
		if err := converse(t, c, user, test.password+"x"); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: got %v with a wrong password, want ErrRefused", name, err)
		}
		if err := c.Verify(user, test.password); err != nil {
			t.Errorf("%s: got %v for the right password", name, err)
		}
		if err := c.Verify(user, test.password+"x"); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: got %v for a wrong password, want ErrRefused", name, err)
		}
	}
}

// TestSCRAM_TheExampleOfTheOlderRFC derives the keys of RFC 5802, section 5, and checks
// its messages with them.
func TestSCRAM_TheExampleOfTheOlderRFC(t *testing.T) {
	t.Parallel()
	salt, err := base64.StdEncoding.DecodeString("QSXCR+Q6sek8bf92")
	if err != nil {
		t.Fatal(err)
	}
	made, err := SHA1.derive("pencil", salt, 4096)
	if err != nil {
		t.Fatal(err)
	}
	first, err := parseFirst([]byte("n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL"))
	if err != nil {
		t.Fatal(err)
	}
	c := &Conversation{credentials: made, first: first, nonce: "fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j"}
	c.serverFirst = serverFirst(c.nonce, made)
	got, err := c.Finish([]byte("c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts="))
	if want := "v=rmF9pqV8S7suAoZWja4dJRkFsKQ="; err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

// TestSCRAM_TheExampleOfTheRFC derives the keys of RFC 7677, section 3, and checks its
// messages with them.
func TestSCRAM_TheExampleOfTheRFC(t *testing.T) {
	t.Parallel()
	salt, err := base64.StdEncoding.DecodeString("W22ZaJ0SNY7soEsUEjb6gQ==")
	if err != nil {
		t.Fatal(err)
	}
	made, err := SHA256.derive("pencil", salt, 4096)
	if err != nil {
		t.Fatal(err)
	}
	first, err := parseFirst([]byte("n,,n=user,r=rOprNGfwEbeRWgbNEkqO"))
	if err != nil {
		t.Fatal(err)
	}
	c := &Conversation{credentials: made, first: first, nonce: "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"}
	c.serverFirst = serverFirst(c.nonce, made)
	got, err := c.Finish([]byte("c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="))
	if want := "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="; err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestSCRAM_WhatIsNoClientsMessageIsRefused(t *testing.T) {
	t.Parallel()
	made := credentials(t, SHA256, "user", "pencil")
	find := func(string) (Credentials, error) { return made, nil }
	for _, message := range []string{
		"", "n", "n,,", "n,,n=user", "n,,r=nonce,n=user", "n,,n=,r=nonce", "n,,n=user,r=", "p=tls-unique,,n=user,r=nonce",
		"n,a=other,n=user,r=nonce", "n,,m=ext,n=user,r=nonce", "n,,n=us=er,r=nonce", "n,,n=user,r=" + strings.Repeat("x", maxMessage),
	} {
		if _, _, err := Start([]byte(message), find); err == nil {
			t.Errorf("Start(%.40q): got no error", message)
		}
	}
	c, _, err := Start([]byte("n,,n=user,r=nonce"), find)
	if err != nil {
		t.Fatal(err)
	}
	for _, message := range []string{
		"", "c=biws,r=" + c.nonce, "c=biws,r=other,p=AAAA", "c=eSws,r=" + c.nonce + ",p=AAAA",
		"c=biws,r=" + c.nonce + ",p=AAAA", "c=biws,r=" + c.nonce + ",p=!", "c=!,r=" + c.nonce + ",p=AAAA",
	} {
		if _, err := c.Finish([]byte(message)); err == nil {
			t.Errorf("Finish(%q): got no error", message)
		}
	}
}

func TestSCRAM_IterationsAreBounded(t *testing.T) {
	t.Parallel()
	for _, iterations := range []int{MinIterations - 1, MaxIterations + 1} {
		c := Credentials{Mechanism: SHA256, Salt: []byte("salt"), Iterations: iterations, StoredKey: make([]byte, 32), ServerKey: make([]byte, 32)}
		if c.Check() == nil {
			t.Errorf("got no error for %d iterations", iterations)
		}
	}
}

func FuzzStart(f *testing.F) {
	f.Add([]byte("n,,n=user,r=rOprNGfwEbeRWgbNEkqO"))
	f.Add([]byte("y,,n=a=2Cb=3Dc,r=x,ext=1"))
	made := credentials(f, SHA256, "user", "pencil")
	f.Fuzz(func(t *testing.T, message []byte) {
		asked := ""
		_, answer, err := Start(message, func(user string) (Credentials, error) {
			asked = user
			return made, nil
		})
		if err == nil && (asked == "" || !strings.HasPrefix(string(answer), "r=")) {
			t.Errorf("got answer %q for user %q", answer, asked)
		}
	})
}

func FuzzFinish(f *testing.F) {
	made := credentials(f, SHA256, "user", "pencil")
	c := &Conversation{credentials: made, first: clientFirst{header: "n,,", bare: "n=user,r=x"}, nonce: "xy"}
	f.Add([]byte("c=biws,r=xy,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="))
	f.Fuzz(func(t *testing.T, message []byte) {
		if proof, err := c.Finish(message); err == nil {
			t.Errorf("got the server's proof %q without a client's", proof)
		}
	})
}
