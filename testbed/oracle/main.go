// Command oracle answers, for the schedules it reads, what the two Go cron libraries themselves say.
//
// One request per line on standard input, one answer per line on standard output, both JSON. The zone data
// is the uncompressed zip that the environment variable ZONEINFO names.
package main

import (
	"archive/zip"
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	gocron "github.com/netresearch/go-cron"
	robfig "github.com/robfig/cron/v3"
)

// request asks for the Count fires after Start, with the clock of the asking program standing in Zone.
type request struct {
	Dialect string `json:"dialect"`
	Spec    string `json:"spec"`
	Zone    string `json:"zone"`
	Start   int64  `json:"start"`
	Nanos   int64  `json:"nanos"`
	Count   int    `json:"count"`
}

// answer has either the fires, fewer than asked for if the library gave up, or why the spec was refused.
type answer struct {
	Fires   []int64 `json:"fires"`
	Refused string  `json:"refused,omitempty"`
}

type schedule interface{ Next(time.Time) time.Time }

func main() {
	zones, err := zoneNames(os.Getenv("ZONEINFO"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "oracle: ZONEINFO must name a zip of zone files:", err)
		os.Exit(1)
	}
	in := json.NewDecoder(bufio.NewReader(os.Stdin))
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	enc := json.NewEncoder(out)
	for in.More() {
		var asked request
		if err := in.Decode(&asked); err != nil {
			fmt.Fprintln(os.Stderr, "oracle:", err)
			os.Exit(1)
		}
		if err := enc.Encode(reply(asked, zones)); err != nil {
			os.Exit(1)
		}
	}
}

// reply turns a panic of a library into a refusal: a spec that crashes its reader means nothing.
func reply(asked request, zones map[string]bool) (said answer) {
	defer func() {
		if cause := recover(); cause != nil {
			said = answer{Refused: fmt.Sprint("panic: ", cause)}
		}
	}()
	// Go would go on to the machine's own zone files, which are not the ones under test.
	if name, ok := prefixZone(asked); ok && !zones[name] {
		return answer{Refused: "zone is not in the pinned data: " + name}
	}
	local, err := time.LoadLocation(asked.Zone)
	if err != nil {
		panic(err)
	}
	found, err := parse(asked)
	if err != nil {
		return answer{Refused: err.Error()}
	}
	said.Fires = []int64{}
	at := time.Unix(asked.Start, asked.Nanos).In(local)
	for range asked.Count {
		if at = found.Next(at); at.IsZero() {
			break
		}
		said.Fires = append(said.Fires, at.Unix())
	}
	return said
}

func parse(asked request) (schedule, error) {
	if asked.Dialect == "go-cron" {
		return gocron.ParseStandard(asked.Spec)
	}
	return robfig.ParseStandard(asked.Spec)
}

func prefixZone(asked request) (string, bool) {
	if !strings.HasPrefix(asked.Spec, "TZ=") && !strings.HasPrefix(asked.Spec, "CRON_TZ=") {
		return "", false
	}
	_, rest, _ := strings.Cut(asked.Spec, "=")
	name, _, ok := strings.Cut(rest, " ")
	if asked.Dialect == "go-cron" && len(name) > 1 && name[0] == name[len(name)-1] && (name[0] == '"' || name[0] == '\'') {
		name = name[1 : len(name)-1]
	}
	return name, ok && name != "" && name != "UTC" && name != "Local"
}

func zoneNames(path string) (map[string]bool, error) {
	files, err := zip.OpenReader(path)
	if err != nil {
		return nil, err
	}
	defer files.Close()
	names := map[string]bool{}
	for _, file := range files.File {
		names[file.Name] = true
	}
	return names, nil
}
