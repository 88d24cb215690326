//! Test only.
