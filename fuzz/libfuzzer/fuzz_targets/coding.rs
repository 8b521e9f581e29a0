#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| suiro_fuzz::coding(data));
