package scram

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// maxMessage bounds a message of a client, in bytes.
const maxMessage = 8 << 10

// clientFirst is client-first-message of RFC 5802, section 7.
type clientFirst struct {
	// header is the part before the bare message, which the final message has to
	// repeat.
	header      string
	bare        string
	user, nonce string
}

func parseFirst(message []byte) (clientFirst, error) {
	text, err := checked(message)
	if err != nil {
		return clientFirst{}, err
	}
	binding, rest, _ := strings.Cut(text, ",")
	identity, bare, whole := strings.Cut(rest, ",")
	if !whole {
		return clientFirst{}, errors.New("the first message is cut short")
	}
	if binding != "n" && binding != "y" {
		return clientFirst{}, fmt.Errorf("channel binding %q is not supported", binding)
	}
	if identity != "" {
		return clientFirst{}, errors.New("an authorization identity is not supported")
	}
	first := clientFirst{header: binding + ",,", bare: bare}
	name, rest, _ := strings.Cut(bare, ",")
	nonce, _, _ := strings.Cut(rest, ",") // what follows are extensions, which may be ignored
	if first.user, err = attribute('n', name); err != nil {
		return clientFirst{}, err
	}
	if first.user, err = unescape(first.user); err != nil {
		return clientFirst{}, err
	}
	first.nonce, err = attribute('r', nonce)
	return first, err
}

func serverFirst(nonce string, c Credentials) string {
	return fmt.Sprintf("r=%s,s=%s,i=%d", nonce, base64.StdEncoding.EncodeToString(c.Salt), c.Iterations)
}

// clientFinal is client-final-message of RFC 5802, section 7.
type clientFinal struct {
	// binding is the header of the first message, as the client repeats it.
	binding, nonce string
	proof          []byte
	withoutProof   string
}

func parseFinal(message []byte) (clientFinal, error) {
	text, err := checked(message)
	if err != nil {
		return clientFinal{}, err
	}
	at := strings.LastIndex(text, ",p=")
	if at < 0 {
		return clientFinal{}, errors.New("the final message has no proof")
	}
	final := clientFinal{withoutProof: text[:at]}
	channel, rest, _ := strings.Cut(final.withoutProof, ",")
	nonce, _, _ := strings.Cut(rest, ",")
	encoded, err := attribute('c', channel)
	if err != nil {
		return clientFinal{}, err
	}
	header, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return clientFinal{}, errors.New("the channel binding is not base64")
	}
	final.binding = string(header)
	if final.nonce, err = attribute('r', nonce); err != nil {
		return clientFinal{}, err
	}
	if final.proof, err = base64.StdEncoding.DecodeString(text[at+len(",p="):]); err != nil {
		return clientFinal{}, errors.New("the proof is not base64")
	}
	return final, nil
}

func checked(message []byte) (string, error) {
	if len(message) > maxMessage {
		return "", fmt.Errorf("a message of %d bytes, where %d are allowed", len(message), maxMessage)
	}
	return string(message), nil
}

// attribute gives the value of key=value, which must not be empty.
func attribute(key byte, text string) (string, error) {
	if len(text) < 3 || text[0] != key || text[1] != '=' {
		return "", fmt.Errorf("attribute %q is missing", key)
	}
	return text[2:], nil
}

// unescape reads a saslname, in which a comma is =2C and an equals sign =3D.
func unescape(name string) (string, error) {
	plain := strings.NewReplacer("=2C", "", "=3D", "").Replace(name)
	if strings.Contains(plain, "=") {
		return "", errors.New("the user name has an equals sign that is not =3D")
	}
	return strings.NewReplacer("=2C", ",", "=3D", "=").Replace(name), nil
}
