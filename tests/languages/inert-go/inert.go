// Reaches for everything that Go offers outside of the sandbox, and says what came of it.
package main

import (
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	opilio "github.com/opilio/opilio/sdk/go"
)

type inert struct{}

func (inert) Extract(document opilio.Document) opilio.Extraction {
	var out opilio.Extraction
	say := func(what, format string, values ...any) {
		uri := fmt.Sprintf(format, values...)
		out.Links = append(out.Links, opilio.Link{URI: uri, Hop: opilio.LinkHop, Context: what})
	}
	first := time.Now()
	say("clock", "%d", first.Unix())
	// An hour passes at once, on the clock that is only for waiting.
	time.Sleep(time.Hour)
	say("moved", "%d", time.Now().Unix()-first.Unix())
	random := make([]byte, 4)
	rand.Read(random)
	again := make([]byte, 4)
	rand.Read(again)
	say("random", "%x %x", random, again)
	say("file", "%s", outcome(os.Open("/etc/passwd")))
	say("written", "%s", outcome(os.Create("file")))
	say("socket", "%s", outcome(net.Dial("tcp", "127.0.0.1:80")))
	say("environment", "%d", len(os.Environ()))
	input, _ := io.ReadAll(os.Stdin)
	say("input", "%d", len(input))
	return out
}

func outcome[T any](_ T, err error) string {
	if err == nil {
		return "opened"
	}
	return "none"
}

func init() {
	opilio.Export(opilio.About{Name: "inert", Version: "1.0.0", Summary: "Reaches for what is outside."}, struct{}{},
		func(struct{}) (*inert, []opilio.Fault) { return &inert{}, nil })
}

func main() {}
