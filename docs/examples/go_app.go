// A service behind the sidecar. Whoever gets here may read this invoice; the field says who it is.
// Start: go run go_app.go
package main

import (
	"fmt"
	"log"
	"net/http"
)

func main() {
	http.HandleFunc("GET /invoices/{id}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "invoice %s for %s\n", r.PathValue("id"), r.Header.Get("X-Auth-Subject"))
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:3000", nil))
}
