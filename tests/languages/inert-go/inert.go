// Uses the clock, randomness, files, sockets, the environment and the input, and reports the results as links.
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
	report := func(context, format string, values ...any) {
		uri := fmt.Sprintf(format, values...)
		out.Links = append(out.Links, opilio.Link{URI: uri, Hop: opilio.LinkHop, Context: context})
	}
	first := time.Now()
	report("clock", "%d", first.Unix())
	// Waiting takes no time, and the wall clock does not move.
	time.Sleep(time.Hour)
	report("moved", "%d", time.Now().Unix()-first.Unix())
	random := make([]byte, 4)
	rand.Read(random)
	again := make([]byte, 4)
	rand.Read(again)
	report("random", "%x %x", random, again)
	report("file", "%s", outcome(os.Open("/etc/passwd")))
	report("written", "%s", outcome(os.Create("file")))
	report("socket", "%s", outcome(net.Dial("tcp", "127.0.0.1:80")))
	report("environment", "%d", len(os.Environ()))
	input, _ := io.ReadAll(os.Stdin)
	report("input", "%d", len(input))
	return out
}

func outcome[T any](_ T, err error) string {
	if err == nil {
		return "opened"
	}
	return "none"
}

func init() {
	opilio.Export(opilio.About{Name: "inert", Version: "1.0.0", Summary: "Tries to reach outside of the sandbox."}, struct{}{},
		func(struct{}) (*inert, []opilio.Fault) { return &inert{}, nil })
}

func main() {}
